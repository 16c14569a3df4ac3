#include "links/alternate_sends.hpp"

namespace omnibus::links {

Result<bool> AlternateSends::go_on(std::uint64_t tag, broker::Unrouted& unrouted) {
  auto found = walks_.find(tag);
  if (found == walks_.end()) {
    if (unrouted.alternate.empty()) return false;
    found = walks_.emplace(tag, Walk{rules::AlternateWalk{first_->name}, first_}).first;
  }
  Walk& way = found->second;
  broker::Remember ids;
  std::uint64_t bytes = 0;
  for (const auto& message : unrouted.messages) {
    bytes += message.bytes.size();
    if (unrouted.remembers && message.facts.message_id) ids.ids.push_back(*message.facts.message_id);
  }
  if (!ids.ids.empty()) way.remember.emplace_back(way.at->route, std::move(ids));
  if (unrouted.alternate.empty() || !way.walk.go_to(unrouted.alternate)) return false;
  // A message that would be dropped because its second way is closed is refused: its sender can do something.
  auto next = context_.entities.find(unrouted.alternate);
  if (!next)
    return fail(Errc::not_found, "'{}', the alternate exchange of '{}', could not be found.",
                unrouted.alternate, way.at->name);
  if (!next->exchange)
    return fail(Errc::not_allowed, "'{}', the alternate exchange of '{}', is no exchange.",
                unrouted.alternate, way.at->name);
  way.at = std::move(next);
  broker::Enqueue enqueue;
  enqueue.request = context_.entities.expect_send(way.at->route, taker_, tag, bytes);
  enqueue.messages = std::move(unrouted.messages);
  enqueue.steps = way.walk.steps();
  context_.entities.send(way.at->route, std::move(enqueue));
  return true;
}

void AlternateSends::end(std::uint64_t tag, bool taken) {
  if (walks_.empty()) return;
  if (const auto walked = walks_.extract(tag); walked && taken)
    for (auto& [route, ids] : walked.mapped().remember) context_.entities.send(route, std::move(ids));
}

}  // namespace omnibus::links
