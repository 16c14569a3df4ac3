#include "broker/queue_settings.hpp"

namespace omnibus::broker {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

Error outside(std::string_view name, std::string_view what, std::string_view range) {
  return {Errc::argument_out_of_range, fmt::format("{} of '{}' must be {}", what, name, range)};
}

}  // namespace

std::vector<Error> wrong_settings(const QueueSettings& s) {
  std::vector<Error> wrong;
  if (s.lock_duration < 5s || s.lock_duration > 5min)
    wrong.push_back(outside(s.name, "LockDuration", "5 s to 5 min"));
  if (s.default_time_to_live < 1s || s.default_time_to_live > unlimited)
    wrong.push_back(outside(s.name, "DefaultMessageTimeToLive", "at least 1 s"));
  if (s.duplicate_window < 20s || s.duplicate_window > 7 * 24h)
    wrong.push_back(outside(s.name, "DuplicateDetectionHistoryTimeWindow", "20 s to 7 days"));
  if (s.delivery_count_max < 1 || s.delivery_count_max > 2000)
    wrong.push_back(outside(s.name, "MaxDeliveryCount", "1 to 2000"));
  if (s.auto_delete_on_idle < 5min || s.auto_delete_on_idle > unlimited)
    wrong.push_back(outside(s.name, "AutoDeleteOnIdle", "at least 5 min"));
  if (s.size_bytes_max == 0) wrong.push_back(outside(s.name, "MaxSizeInMegabytes", "above 0"));
  if (!is_a_partition(s.is_partitioned, s.partition, s.partition_count))
    wrong.push_back(outside(s.name, "PartitionCount", "2 to 32"));
  if (s.requires_session && !s.forward_to.empty())
    wrong.push_back({Errc::not_allowed, fmt::format("'{}' has sessions and cannot forward", s.name)});
  return wrong;
}

std::optional<Error> check_settings(const QueueSettings& settings) {
  auto wrong = wrong_settings(settings);
  return wrong.empty() ? std::nullopt : std::optional{std::move(wrong.front())};
}

std::optional<Error> check_update(const QueueSettings& present, const QueueSettings& wanted) {
  if (present.requires_session != wanted.requires_session ||
      present.requires_duplicate_detection != wanted.requires_duplicate_detection ||
      present.is_partitioned != wanted.is_partitioned || present.partition != wanted.partition ||
      present.partition_count != wanted.partition_count)
    return Error{Errc::not_allowed,
                 fmt::format("sessions, duplicate detection and partitions of '{}' are fixed at its creation",
                             present.name)};
  return check_settings(wanted);
}

}  // namespace omnibus::broker
