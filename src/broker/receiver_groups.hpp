// Receivers that stand at several partitions of one store with one credit [service-bus contract 9.10].
//
// To its link a group is one receiver: it attaches once, has one limit, is drained once. At each partition it
// is a receiver of the same id without credit of its own. A partition that has something is lent credit of
// the group whose turn it is, at once and as a drain, so that what it does not use is there for the next one:
// no message is locked that no link asked for, and no partition is asked that has nothing. Both partitions
// and groups take turns; messages go out some at a time, for what goes out together is settled together.
//
// A link whose entity is in several stores may keep its credit to itself (AttachReceiver::Credit::told): its
// group is told when there is something that no credit in the store takes, one for each so many messages, and
// has the word until it asks by a drain, passes by a SetCredit without one, or leaves.
//
// Where the partitions are is the carrier's business: it hands in what they answer, and calls work() when
// nothing else is under way. Lives on one core.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "broker/commands.hpp"
#include "broker/effects.hpp"

namespace omnibus::broker {

class ReceiverGroups {
 public:
  // So many messages go to one receiver before it is the next one's turn: as many as one sender's burst
  // brings to a partition.
  static constexpr std::uint32_t together = 128;

  // The store, as groups see it.
  class Partitions {
   public:
    virtual ~Partitions() = default;
    // How many messages could be delivered now; 0 while nobody is served.
    [[nodiscard]] virtual std::uint32_t available(std::uint32_t partition, SubQueue sub_queue) const = 0;
    // Applies a command at one partition; what it answers comes to passes(), now or later.
    virtual void ask(std::uint32_t partition, Command&& command) = 0;
    // To the link of a group.
    virtual void tell(std::uint32_t partition, Effect&& effect) = 0;
  };

  explicit ReceiverGroups(Partitions& partitions) : partitions_(partitions) {}
  ReceiverGroups(const ReceiverGroups&) = delete;
  ReceiverGroups& operator=(const ReceiverGroups&) = delete;

  // A command to a partition. False: it is none of a group.
  [[nodiscard]] bool takes(std::uint32_t partition, const Command& command);
  // What a partition says on its way to a link, brought to what the link has to hear. False: nothing.
  [[nodiscard]] bool passes(std::uint32_t partition, Effect& effect);
  // Something happened to a partition: there may be more to deliver.
  void touched(std::uint32_t partition);
  // The same for all of them.
  void touched_all();
  // Does what has become due. False: nothing had.
  bool work();

 private:
  struct Family;
  struct Part {
    std::uint64_t limit = 0;  // as its receiver counts deliveries
    std::uint32_t lent = 0;   // credit it has now
    bool asked = false;       // and has not answered
  };
  struct Group {
    ReceiverId receiver = ReceiverId::none;
    Family* family = nullptr;
    ReceiveMode mode = ReceiveMode::peek_lock;
    bool is_told = false;
    bool has_the_word = false;
    bool attached = false;    // its link knows that it is
    bool ended = false;       // its link knows that it is not any more
    bool drains = false;      // its link waits for LinkDrained
    std::uint64_t limit = 0;  // both as the link counts
    std::uint64_t delivered = 0;
    std::uint32_t lent = 0;               // by all parts together
    std::uint32_t asked = 0;              // parts that have not answered
    std::vector<Part> parts;              // as the family has its partitions
    std::list<Group*>* stands = nullptr;  // in a list of the family, or nowhere
    std::list<Group*>::iterator place;

    [[nodiscard]] std::uint32_t free() const;
  };
  // All groups at the same partitions and sub-queue.
  struct Family {
    SubQueue sub_queue = SubQueue::active;
    std::vector<std::uint32_t> partitions;
    std::list<Group*> line;   // with credit, in the order of their turns
    std::list<Group*> armed;  // to be told
    std::list<Group*> full;   // they hold as much as they may: to be told when something has happened
    std::size_t groups = 0;
    std::size_t words = 0;  // how many have the word
    std::size_t turn = 0;   // which partition is first
    bool due = false;       // is in due_
  };
  using FamilyKey = std::pair<std::uint32_t, SubQueue>;  // by its first partition

  [[nodiscard]] Group* find(ReceiverId receiver);
  [[nodiscard]] static std::size_t index_of(const Family& family, std::uint32_t partition);
  void delivered(std::uint32_t partition, ReceiverId receiver);
  void attach(std::uint32_t partition, const AttachReceiver& command);
  void set_credit(Group& group, const SetCredit& command);
  void close(Group& group);
  void look_at(Family& family);

  static void stand(Group& group, std::list<Group*>& list);
  static void leave(Group& group);
  // In the line with credit, out of it without.
  static void find_place(Group& group);
  static void take_the_word(Group& group);
  static void arm_the_full(Family& family);

  [[nodiscard]] std::uint64_t available(const Family& family) const;
  void serve(Family& family);
  // Answers whether credit came back that earlier partitions could use.
  bool serve(Family& family, std::size_t index);
  void lend(Group& group, std::size_t index, std::uint32_t credit);
  void end_drain(Group& group);
  void tell(Family& family);
  void tell(Group& group, std::uint64_t available);

  Partitions& partitions_;
  boost::unordered_flat_map<ReceiverId, std::unique_ptr<Group>> all_;  // every delivery looks here
  std::map<FamilyKey, Family> families_;
  boost::unordered_flat_map<std::uint32_t, std::vector<Family*>> families_of_;  // every command looks here
  std::vector<FamilyKey> due_;
  std::vector<ReceiverId> draining_;
  std::vector<ReceiverId> ended_;
  bool working_ = false;
  // Who is being lent credit: most deliveries are answers to that.
  Group* serving_ = nullptr;
  std::size_t serving_at_ = 0;
};

}  // namespace omnibus::broker
