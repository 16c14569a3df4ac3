#include "store/outbox.hpp"

namespace omnibus::store {
namespace {

// Calls `each` with the place of every message an effect names, and where its bytes go.
template <class Each>
void for_each_message(broker::Answer& answer, const Each& each) {
  if (const auto* deliver = std::get_if<broker::Deliver>(&answer.effect)) {
    each(deliver->status.stored, answer.message);
  } else if (const auto* forward = std::get_if<broker::Forward>(&answer.effect)) {
    each(forward->status.stored, answer.message);
  } else if (const auto* due = std::get_if<broker::Distribute>(&answer.effect)) {
    each(due->status.stored, answer.message);
  } else if (const auto* messages = std::get_if<broker::Messages>(&answer.effect)) {
    answer.messages.resize(messages->messages.size());
    for (std::size_t i = 0; i < messages->messages.size(); ++i)
      each(messages->messages[i].status.stored, answer.messages[i]);
  }
}

}  // namespace

std::uint32_t connection_of(const broker::Effect& effect) {
  return std::visit(
      [](const auto& one) -> std::uint32_t {
        if constexpr (requires { one.request; })
          return connection_of(one.request);
        else if constexpr (requires { one.receiver; })
          return connection_of(one.receiver);
        else
          return 0;
      },
      effect);
}

std::uint32_t Outbox::fill(Letter& letter) {
  std::uint32_t missing = 0;
  for_each_message(letter.answer, [&](const broker::StoredMessage& stored, Payload& into) {
    if (stored.size == 0) return;
    auto bytes = moving_.records() > 0 ? moving_.find(stored) : std::nullopt;
    if (!bytes) bytes = cache_.find(stored);
    if (bytes)
      into = std::move(*bytes);
    else
      ++missing;
  });
  return missing;
}

void Outbox::post(PartitionId from, std::uint64_t era, broker::Effect&& effect) {
  const std::uint32_t connection = connection_of(effect);
  const LineId id = connection != 0 ? LineId{connection} << 32 : static_cast<std::uint32_t>(from);
  Letter letter{{std::move(effect)}, from, era};
  const std::uint32_t missing = fill(letter);
  const bool stands_behind = !lines_.empty() && lines_.contains(id);
  if (missing == 0 && !stands_behind) return send_(std::move(letter));
  auto waiting = std::make_unique<Waiting>(std::move(letter), id, missing);
  Waiting& added = *waiting;
  lines_[id].push_back(std::move(waiting));
  ++waiting_;
  ++unvisited_;
  if (missing > 0) ask(added);
}

void Outbox::ask(Waiting& waiting) {
  for_each_message(waiting.letter.answer, [&](const broker::StoredMessage& stored, Payload& into) {
    if (stored.size == 0 || !into.empty()) return;
    reader_.want(stored,
                 [this, &waiting, &into](const Result<Payload>& bytes) { got(waiting, into, bytes); });
  });
}

void Outbox::got(Waiting& waiting, Payload& into, const Result<Payload>& bytes) {
  if (bytes)
    into = *bytes;
  else
    waiting.letter.unreadable = true;
  if (--waiting.missing == 0) flush(waiting.line);
}

void Outbox::flush(LineId id) {
  // Sending may add to the line, and to other lines.
  for (;;) {
    const auto line = lines_.find(id);
    if (line == lines_.end()) return;
    if (line->second.empty()) {
      lines_.erase(line);
      return;
    }
    if (line->second.front()->missing > 0) return;
    const std::unique_ptr<Waiting> first = std::move(line->second.front());
    line->second.pop_front();
    --waiting_;
    if (!first->visited) --unvisited_;
    send_(std::move(first->letter));
  }
}

void Outbox::forget_visits() {
  for (auto& [id, line] : lines_)
    for (const auto& waiting : line) waiting->visited = false;
  unvisited_ = waiting_;
}

}  // namespace omnibus::store
