#include "broker/receiver_groups.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace omnibus::broker {

std::uint32_t ReceiverGroups::Group::free() const {
  const std::uint64_t used = delivered + lent;
  return limit > used ? static_cast<std::uint32_t>(std::min<std::uint64_t>(limit - used, UINT32_MAX)) : 0;
}

ReceiverGroups::Group* ReceiverGroups::find(ReceiverId receiver) {
  const auto found = all_.find(receiver);
  return found == all_.end() ? nullptr : found->second.get();
}

std::size_t ReceiverGroups::index_of(const Family& family, std::uint32_t partition) {
  const auto found = std::ranges::find(family.partitions, partition);
  check(found != family.partitions.end(), "a group hears of its own partitions");
  return static_cast<std::size_t>(found - family.partitions.begin());
}

bool ReceiverGroups::takes(std::uint32_t partition, const Command& command) {
  if (const auto* attached = std::get_if<AttachReceiver>(&command)) {
    if (attached->credit != AttachReceiver::Credit::shared &&
        attached->credit != AttachReceiver::Credit::told)
      return false;
    attach(partition, *attached);
    return true;
  }
  if (all_.empty()) return false;
  if (const auto* credit = std::get_if<SetCredit>(&command)) {
    Group* group = find(credit->receiver);
    if (group) set_credit(*group, *credit);
    return group != nullptr;
  }
  if (const auto* leaving = std::get_if<CloseReceiver>(&command)) {
    Group* group = find(leaving->receiver);
    if (group) close(*group);
    return group != nullptr;
  }
  return false;
}

void ReceiverGroups::attach(std::uint32_t partition, const AttachReceiver& command) {
  const auto [at, is_new] = families_.try_emplace({partition, command.sub_queue});
  Family& family = at->second;
  if (is_new) {
    family.sub_queue = command.sub_queue;
    family.partitions.push_back(partition);
    family.partitions.insert(family.partitions.end(), command.others.begin(), command.others.end());
    for (const std::uint32_t one : family.partitions) families_of_[one].push_back(&family);
  }
  check(family.partitions.size() == command.others.size() + 1,
        "receivers of one entity stand at the same partitions");
  auto made = std::make_unique<Group>();
  Group& group = *made;
  group.receiver = command.receiver;
  group.family = &family;
  group.mode = command.mode;
  group.is_told = command.credit == AttachReceiver::Credit::told;
  group.parts.resize(family.partitions.size());
  ++family.groups;
  check(all_.emplace(group.receiver, std::move(made)).second, "a receiver attaches once");
  AttachReceiver one = command;
  one.others.clear();
  one.credit = AttachReceiver::Credit::part;
  for (std::size_t i = 0; i < family.partitions.size() && !group.ended; ++i)
    partitions_.ask(family.partitions[i], AttachReceiver{one});
  if (group.ended || !group.is_told) return;
  stand(group, family.armed);
  look_at(family);
}

void ReceiverGroups::set_credit(Group& group, const SetCredit& command) {
  group.limit = command.delivery_limit;
  take_the_word(group);
  if (group.ended) return;
  group.drains |= command.drain;
  if (command.drain) draining_.push_back(group.receiver);
  find_place(group);
  look_at(*group.family);
}

void ReceiverGroups::close(Group& group) {
  leave(group);
  take_the_word(group);
  Family& family = *group.family;
  look_at(family);  // the word is another's now
  const ReceiverId receiver = group.receiver;
  all_.erase(receiver);
  for (const std::uint32_t partition : family.partitions) partitions_.ask(partition, CloseReceiver{receiver});
  if (--family.groups > 0) return;
  const FamilyKey key{family.partitions.front(), family.sub_queue};
  for (const std::uint32_t partition : family.partitions) {
    const auto of = families_of_.find(partition);
    std::erase(of->second, &family);
    if (of->second.empty()) families_of_.erase(of);
  }
  families_.erase(key);
}

void ReceiverGroups::look_at(Family& family) {
  if (!std::exchange(family.due, true)) due_.emplace_back(family.partitions.front(), family.sub_queue);
}

void ReceiverGroups::touched(std::uint32_t partition) {
  if (families_of_.empty()) return;
  const auto found = families_of_.find(partition);
  if (found == families_of_.end()) return;
  for (Family* family : found->second) {
    // Not by what work() itself does: it would go on for ever.
    if (!working_) arm_the_full(*family);
    if (!family->due && (!family->line.empty() || !family->armed.empty()) &&
        partitions_.available(partition, family->sub_queue) > 0)
      look_at(*family);
  }
}

void ReceiverGroups::touched_all() {
  for (auto& [key, family] : families_) {
    arm_the_full(family);
    look_at(family);
  }
}

void ReceiverGroups::arm_the_full(Family& family) {
  while (!family.full.empty()) stand(*family.full.front(), family.armed);
}

void ReceiverGroups::delivered(std::uint32_t partition, ReceiverId receiver) {
  const bool is_served =
      serving_ && serving_->receiver == receiver && serving_->family->partitions[serving_at_] == partition;
  Group* group = is_served ? serving_ : find(receiver);
  if (!group) return;
  Part& part = group->parts[is_served ? serving_at_ : index_of(*group->family, partition)];
  check(part.lent > 0, "a delivery uses credit that was lent");
  --part.lent;
  --group->lent;
  ++group->delivered;
}

bool ReceiverGroups::passes(std::uint32_t partition, Effect& effect) {
  if (all_.empty()) return true;
  if (const auto* delivery = std::get_if<Deliver>(&effect)) {
    delivered(partition, delivery->receiver);
    return true;
  }
  if (const auto* drained = std::get_if<LinkDrained>(&effect)) {
    Group* group = find(drained->receiver);
    if (!group) return true;
    Part& part = group->parts[index_of(*group->family, partition)];
    group->lent -= std::exchange(part.lent, 0);
    part.limit = drained->delivered;
    if (std::exchange(part.asked, false)) --group->asked;
    find_place(*group);
    look_at(*group->family);
    return false;
  }
  if (const auto* attached = std::get_if<ReceiverAttached>(&effect)) {
    Group* group = find(attached->receiver);
    return !group || !std::exchange(group->attached, true);
  }
  // The first partition that lets go of it ends it everywhere.
  const auto end = [&](const auto& no) {
    Group* group = find(no.receiver);
    if (!group) return true;
    if (std::exchange(group->ended, true)) return false;
    leave(*group);
    ended_.push_back(group->receiver);
    Error why = no.error;
    if (group->attached)
      effect = DetachReceiver{group->receiver, std::move(why)};
    else
      effect = ReceiverRefused{group->receiver, std::move(why)};
    return true;
  };
  if (const auto* refused = std::get_if<ReceiverRefused>(&effect)) return end(*refused);
  if (const auto* gone = std::get_if<DetachReceiver>(&effect)) return end(*gone);
  return true;
}

bool ReceiverGroups::work() {
  if (due_.empty() && ended_.empty()) return false;
  working_ = true;
  std::vector<FamilyKey> due;
  due.swap(due_);
  for (const FamilyKey& key : due)
    if (const auto family = families_.find(key); family != families_.end()) {
      serve(family->second);
      family->second.due = false;
    }
  std::vector<ReceiverId> draining;
  draining.swap(draining_);
  for (const ReceiverId receiver : draining)
    if (Group* group = find(receiver)) end_drain(*group);
  for (const FamilyKey& key : due)
    if (const auto family = families_.find(key); family != families_.end()) tell(family->second);
  std::vector<ReceiverId> ended;
  ended.swap(ended_);
  for (const ReceiverId receiver : ended)
    if (Group* group = find(receiver)) close(*group);
  working_ = false;
  return true;
}

void ReceiverGroups::stand(Group& group, std::list<Group*>& list) {
  leave(group);
  group.stands = &list;
  group.place = list.insert(list.end(), &group);
}

void ReceiverGroups::leave(Group& group) {
  if (group.stands) std::exchange(group.stands, nullptr)->erase(group.place);
}

void ReceiverGroups::find_place(Group& group) {
  if (group.ended) return;
  std::list<Group*>& line = group.family->line;
  if (group.free() == 0) {
    if (group.stands == &line) leave(group);
  } else if (group.stands != &line) {
    stand(group, line);
  }
}

void ReceiverGroups::take_the_word(Group& group) {
  if (std::exchange(group.has_the_word, false)) --group.family->words;
}

std::uint64_t ReceiverGroups::available(const Family& family) const {
  std::uint64_t all = 0;
  for (const std::uint32_t partition : family.partitions)
    all += partitions_.available(partition, family.sub_queue);
  return all;
}

void ReceiverGroups::serve(Family& family) {
  const std::size_t count = family.partitions.size();
  const std::size_t first = family.turn;
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < count && !family.line.empty(); ++i)
      again |= serve(family, (first + i) % count);
  }
}

// Who cannot take anything here, for it holds as much as it may or its last answer is on the way, is passed
// over.
bool ReceiverGroups::serve(Family& family, std::size_t index) {
  bool came_back = false;
  const std::uint32_t partition = family.partitions[index];
  std::uint32_t there = partitions_.available(partition, family.sub_queue);
  for (std::size_t in_vain = 0; there > 0 && in_vain < family.line.size();) {
    Group& group = *family.line.front();
    family.line.splice(family.line.end(), family.line, family.line.begin());
    ++in_vain;
    if (group.parts[index].asked) continue;
    family.turn = (index + 1) % family.partitions.size();
    const std::uint32_t credit = std::min({group.free(), there, together});
    const std::uint64_t before = group.delivered;
    lend(group, index, credit);
    const std::uint32_t left = partitions_.available(partition, family.sub_queue);
    if (left < there) {
      in_vain = 0;
      came_back |= !group.parts[index].asked && group.delivered - before < credit;
    }
    there = left;
  }
  return came_back;
}

void ReceiverGroups::lend(Group& group, std::size_t index, std::uint32_t credit) {
  Part& part = group.parts[index];
  part.asked = true;
  ++group.asked;
  part.lent = credit;
  part.limit += credit;
  group.lent += credit;
  find_place(group);
  serving_ = &group;
  serving_at_ = index;
  partitions_.ask(group.family->partitions[index], SetCredit{group.receiver, part.limit, true});
  serving_ = nullptr;
}

// Everybody with credit has got what there is. A receive-and-delete is answered by the disk.
void ReceiverGroups::end_drain(Group& group) {
  if (!group.drains) return;
  if (group.asked > 0) {
    draining_.push_back(group.receiver);
    return;
  }
  group.drains = false;
  const bool took_all = group.free() == 0;
  group.delivered = group.limit = std::max(group.limit, group.delivered);
  leave(group);
  if (group.is_told) {
    // Who took all it could and left something hears so at once: its link may have more credit by now. The
    // word goes to the next one all the same, so that the more there is, the more are asked.
    const std::uint64_t left = available(*group.family);
    if (left > 0 && took_all)
      tell(group, left);
    else
      stand(group, left > 0 ? group.family->full : group.family->armed);
  }
  partitions_.tell(group.family->partitions.front(), LinkDrained{group.receiver, group.delivered});
}

void ReceiverGroups::tell(Family& family) {
  if (family.armed.empty()) return;
  const std::uint64_t there = available(family);
  while (!family.armed.empty() && family.words * together < there) {
    Group& group = *family.armed.front();
    leave(group);
    group.has_the_word = true;
    ++family.words;
    tell(group, there);
  }
}

void ReceiverGroups::tell(Group& group, std::uint64_t available) {
  partitions_.tell(group.family->partitions.front(),
                   MessagesAvailable{group.receiver, static_cast<std::uint32_t>(
                                                         std::min<std::uint64_t>(available, UINT32_MAX))});
}

}  // namespace omnibus::broker
