#include "sim/checker.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/history.hpp"

namespace omnibus::sim {
namespace {

// A history line by line, as clients write it.
class Story {
 public:
  Story& line(std::string_view text) {
    auto event = read_event(text);
    EXPECT_TRUE(event) << text << ": " << (event ? "" : event.error().detail);
    if (event) history_.push_back(*std::move(event));
    return *this;
  }
  // The letters of what is wrong, in the order of time.
  [[nodiscard]] std::string wrong(const CheckerOptions& options = {}) const {
    std::string letters;
    for (const Violation& one : judge(history_, options).violations) letters += static_cast<char>(one.check);
    return letters;
  }
  [[nodiscard]] Judgement judged() const { return judge(history_); }

 private:
  History history_;
};

constexpr auto send_a = R"({"t":1,"who":"s","do":"send","id":"a","to":"q"})";
constexpr auto a_is_accepted = R"({"t":2,"who":"s","do":"sent","id":"a","result":"accepted"})";
constexpr auto got_a = R"({"t":10,"who":"r","do":"got","id":"a","from":"q","seq":1,"count":1,"until":100})";
constexpr auto complete_a =
    R"({"t":20,"who":"r","do":"settle","id":"a","from":"q","seq":1,"how":"complete"})";
constexpr auto a_is_completed =
    R"({"t":21,"who":"r","do":"settled","id":"a","from":"q","seq":1,"how":"complete","result":"accepted"})";
constexpr auto a_is_not_completed =
    R"({"t":21,"who":"r","do":"settled","id":"a","from":"q","seq":1,"how":"complete","result":"refused"})";
constexpr auto nothing_left = R"({"t":1000,"do":"left","from":"q","ids":[]})";
constexpr auto a_is_left = R"({"t":1000,"do":"left","from":"q","ids":["a"]})";
constexpr auto a_is_dead = R"({"t":1000,"do":"left","from":"q/$DeadLetterQueue","ids":["a"]})";

TEST(Checker, MessageThatWasSentReceivedAndCompletedIsFine) {
  const auto story = Story{}
                         .line(send_a)
                         .line(a_is_accepted)
                         .line(got_a)
                         .line(complete_a)
                         .line(a_is_completed)
                         .line(nothing_left);
  EXPECT_EQ(story.wrong(), "");
  EXPECT_EQ(story.judged().sends, 1u);
  EXPECT_EQ(story.judged().deliveries, 1u);
}

TEST(Checker, AcceptedMessageThatIsNowhereIsLost) {
  EXPECT_EQ(Story{}.line(send_a).line(a_is_accepted).line(nothing_left).wrong(), "L");
  EXPECT_EQ(Story{}.line(send_a).line(a_is_accepted).line(a_is_left).wrong(), "");
  EXPECT_EQ(Story{}.line(send_a).line(a_is_accepted).line(nothing_left).line(a_is_dead).wrong(), "");
  EXPECT_EQ(Story{}.line(send_a).line(nothing_left).wrong(), "") << "it was never acknowledged";
}

// What is known to be damaged excuses itself, and the transactions that it had a part in; nothing else.
TEST(Checker, OnlyDamagedEntitiesAreExcused) {
  const CheckerOptions damaged{.excused = {"q"}};
  const auto lost = Story{}.line(send_a).line(a_is_accepted).line(nothing_left);
  EXPECT_EQ(lost.wrong(damaged), "");
  EXPECT_EQ(lost.wrong({.excused = {"other"}}), "L");
  EXPECT_EQ(Story{}.line(R"({"t":1000,"do":"left","from":"q","ids":["x"]})").wrong(damaged), "G")
      << "nobody sent it";
  const auto transaction =
      Story{}
          .line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","tx":"1"})")
          .line(R"({"t":2,"who":"s","do":"sent","id":"a","result":"accepted"})")
          .line(R"({"t":3,"who":"s","do":"send","id":"b","to":"p","tx":"1"})")
          .line(R"({"t":4,"who":"s","do":"sent","id":"b","result":"accepted"})")
          .line(R"({"t":6,"who":"s","do":"end","tx":"1","how":"commit","result":"accepted"})")
          .line(nothing_left)
          .line(R"({"t":1000,"do":"left","from":"p","ids":[]})");
  EXPECT_EQ(transaction.wrong(), "TT");
  EXPECT_EQ(transaction.wrong(damaged), "") << "the other half may have gone with it";
  EXPECT_EQ(transaction.wrong({.excused = {"other"}}), "TT");
}

TEST(Checker, DeliveryThatWasNotCompletedDoesNotExcuseALoss) {
  EXPECT_EQ(Story{}.line(send_a).line(a_is_accepted).line(got_a).line(nothing_left).wrong(), "L");
  EXPECT_EQ(Story{}
                .line(send_a)
                .line(a_is_accepted)
                .line(got_a)
                .line(complete_a)
                .line(a_is_not_completed)
                .line(nothing_left)
                .wrong(),
            "L");
  EXPECT_EQ(Story{}.line(send_a).line(a_is_accepted).line(got_a).line(complete_a).line(nothing_left).wrong(),
            "")
      << "nobody knows whether it was completed";
}

TEST(Checker, EntityThatNobodyLookedIntoIsCountedAsUnchecked) {
  const auto judged = Story{}.line(send_a).line(a_is_accepted).judged();
  EXPECT_TRUE(judged.violations.empty());
  EXPECT_EQ(judged.unchecked, 1u);
}

TEST(Checker, MessageReceivedAndDeletedIsNotLost) {
  EXPECT_EQ(Story{}
                .line(send_a)
                .line(a_is_accepted)
                .line(R"({"t":10,"who":"r","do":"got","id":"a","from":"q","seq":1})")
                .line(nothing_left)
                .wrong(),
            "");
  EXPECT_EQ(Story{}
                .line(R"({"t":0,"do":"entity","name":"q","lossy":true})")
                .line(send_a)
                .line(a_is_accepted)
                .line(nothing_left)
                .wrong(),
            "");
}

TEST(Checker, EverySubscriptionKeepsItsCopy) {
  constexpr auto send = R"({"t":1,"who":"s","do":"send","id":"a","to":"t"})";
  constexpr auto one = R"({"t":1000,"do":"left","from":"t/Subscriptions/x","ids":["a"]})";
  EXPECT_EQ(Story{}
                .line(send)
                .line(a_is_accepted)
                .line(one)
                .line(R"({"t":1000,"do":"left","from":"t/Subscriptions/y","ids":["a"]})")
                .wrong(),
            "");
  EXPECT_EQ(Story{}
                .line(send)
                .line(a_is_accepted)
                .line(one)
                .line(R"({"t":1000,"do":"left","from":"t/Subscriptions/y","ids":[]})")
                .wrong(),
            "L");
}

TEST(Checker, SecondDeliveryWithinALockIsDoubled) {
  constexpr auto again =
      R"({"t":50,"who":"r2","do":"got","id":"a","from":"q","seq":1,"count":2,"until":150})";
  constexpr auto later =
      R"({"t":100,"who":"r2","do":"got","id":"a","from":"q","seq":1,"count":2,"until":200})";
  const auto begin = Story{}.line(send_a).line(a_is_accepted).line(got_a);
  EXPECT_EQ(Story{begin}.line(again).line(a_is_left).wrong(), "D");
  EXPECT_EQ(Story{begin}.line(later).line(a_is_left).wrong(), "");
  EXPECT_EQ(Story{begin}.line(again).line(a_is_left).wrong({.slack = 50}), "");
  constexpr auto abandon = R"({"t":40,"who":"r","do":"settle","id":"a","from":"q","seq":1,"how":"abandon"})";
  EXPECT_EQ(Story{begin}.line(abandon).line(again).line(a_is_left).wrong(), "") << "it was given back";
  constexpr auto renewed = R"({"t":40,"who":"r","do":"renewed","id":"a","from":"q","seq":1,"until":300})";
  EXPECT_EQ(Story{begin}.line(renewed).line(later).line(a_is_left).wrong(), "D");
}

TEST(Checker, CrashUndoesOnlyLocksThatDidNotReachTheDisk) {
  constexpr auto again =
      R"({"t":50,"who":"r2","do":"got","id":"a","from":"q","seq":1,"count":1,"until":150})";
  const auto begin = Story{}.line(send_a).line(a_is_accepted).line(got_a);
  EXPECT_EQ(Story{begin}.line(R"({"t":40,"do":"fault","what":"crash"})").line(again).line(a_is_left).wrong(),
            "");
  EXPECT_EQ(Story{begin}
                .line(R"({"t":40,"do":"fault","what":"crash","since":5})")
                .line(again)
                .line(a_is_left)
                .wrong(),
            "");
  EXPECT_EQ(Story{begin}
                .line(R"({"t":40,"do":"fault","what":"crash","since":30})")
                .line(again)
                .line(a_is_left)
                .wrong(),
            "D");
  EXPECT_EQ(Story{begin}.line(R"({"t":40,"do":"fault","what":"cut"})").line(again).line(a_is_left).wrong(),
            "D");
}

TEST(Checker, LockThatWasTakenBeforeACrashMayBeHeardOfAfterIt) {
  Story begin;
  begin.line(R"({"t":0,"do":"entity","name":"q","lock":95})").line(send_a).line(a_is_accepted);
  begin.line(R"({"t":8,"do":"fault","what":"fail","since":4})").line(got_a);  // taken at 5
  begin.line(R"({"t":50,"who":"r2","do":"got","id":"a","from":"q","seq":1,"count":1,"until":145})");
  EXPECT_EQ(Story{begin}.line(a_is_left).wrong(), "");
  Story later;
  later.line(R"({"t":0,"do":"entity","name":"q","lock":91})").line(send_a).line(a_is_accepted);
  later.line(R"({"t":8,"do":"fault","what":"fail","since":4})").line(got_a);  // taken at 9
  later.line(R"({"t":50,"who":"r2","do":"got","id":"a","from":"q","seq":1,"count":1,"until":141})");
  EXPECT_EQ(Story{later}.line(a_is_left).wrong(), "D");
}

TEST(Checker, DeliveryMayBeOvertakenOnItsWay) {
  Story begin;
  begin.line(R"({"t":0,"do":"entity","name":"q","lock":5})").line(send_a).line(a_is_accepted);
  begin.line(R"({"t":20,"who":"r2","do":"got","id":"a","from":"q","seq":1,"count":2,"until":25})");
  begin.line(R"({"t":21,"who":"r2","do":"settle","id":"a","from":"q","seq":1,"how":"complete"})");
  begin.line(
      R"({"t":22,"who":"r2","do":"settled","id":"a","from":"q","seq":1,"how":"complete","result":"accepted"})");
  const auto late = R"({"t":23,"who":"r","do":"got","id":"a","from":"q","seq":1,"count":1,"until":15})";
  const auto ghost = R"({"t":30,"who":"r","do":"got","id":"a","from":"q","seq":1,"count":3,"until":33})";
  EXPECT_EQ(Story{begin}.line(late).line(nothing_left).wrong(), "") << "it was taken at 10";
  EXPECT_EQ(Story{begin}.line(ghost).line(nothing_left).wrong(), "G");
}

TEST(Checker, SessionHasOneHolder) {
  constexpr auto locked = R"({"t":10,"who":"r","do":"locked","session":"x","from":"q","until":100})";
  constexpr auto again = R"({"t":50,"who":"r2","do":"locked","session":"x","from":"q","until":150})";
  EXPECT_EQ(Story{}.line(locked).line(again).wrong(), "D");
  EXPECT_EQ(Story{}
                .line(locked)
                .line(R"({"t":20,"who":"r","do":"unlocked","session":"x","from":"q"})")
                .line(again)
                .wrong(),
            "");
  EXPECT_EQ(Story{}
                .line(locked)
                .line(R"({"t":150,"who":"r2","do":"locked","session":"x","from":"q","until":250})")
                .wrong(),
            "");
  EXPECT_EQ(Story{}
                .line(locked)
                .line(R"({"t":90,"who":"r","do":"renewed","session":"x","from":"q","until":190})")
                .line(R"({"t":150,"who":"r2","do":"locked","session":"x","from":"q","until":250})")
                .wrong(),
            "D");
}

TEST(Checker, MessageOfASessionMayComeAgainWhenTheSessionWasGivenBack) {
  Story begin;
  begin.line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","session":"x"})").line(a_is_accepted);
  begin.line(R"({"t":10,"who":"r","do":"got","id":"a","from":"q","seq":1,"session":"x","until":100})");
  constexpr auto again =
      R"({"t":50,"who":"r2","do":"got","id":"a","from":"q","seq":1,"session":"x","until":150})";
  EXPECT_EQ(Story{begin}.line(again).line(a_is_left).wrong(), "D");
  EXPECT_EQ(Story{begin}
                .line(R"({"t":20,"who":"r","do":"unlocked","session":"x","from":"q"})")
                .line(again)
                .line(a_is_left)
                .wrong(),
            "");
}

TEST(Checker, SessionKeepsTheOrderOfItsSender) {
  Story begin;
  begin.line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","session":"x"})");
  begin.line(R"({"t":2,"who":"s","do":"send","id":"b","to":"q","session":"x"})");
  begin.line(R"({"t":3,"who":"s","do":"sent","id":"a","result":"accepted"})");
  begin.line(R"({"t":3,"who":"s","do":"sent","id":"b","result":"accepted"})");
  constexpr auto left = R"({"t":1000,"do":"left","from":"q","ids":["a","b"]})";
  EXPECT_EQ(Story{begin}
                .line(R"({"t":10,"who":"r","do":"got","id":"a","from":"q","seq":1,"until":100})")
                .line(R"({"t":11,"who":"r","do":"got","id":"b","from":"q","seq":2,"until":100})")
                .line(left)
                .wrong(),
            "");
  EXPECT_EQ(Story{begin}
                .line(R"({"t":10,"who":"r","do":"got","id":"b","from":"q","seq":2,"until":100})")
                .line(R"({"t":11,"who":"r","do":"got","id":"a","from":"q","seq":1,"until":100})")
                .line(left)
                .wrong(),
            "O");
  // It was on the way to somebody whose lock ended.
  const auto a_comes_at_120 = [&](std::string_view until) {
    return Story{begin}
        .line(R"({"t":110,"who":"r2","do":"got","id":"b","from":"q","seq":2,"until":200})")
        .line(
            fmt::format(R"({{"t":120,"who":"r","do":"got","id":"a","from":"q","seq":1,"until":{}}})", until))
        .line(left)
        .wrong();
  };
  EXPECT_EQ(a_comes_at_120("100"), "");
  EXPECT_EQ(a_comes_at_120("115"), "O");
}

TEST(Checker, DuplicateWithinTheWindowIsSeen) {
  Story begin;
  begin.line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","mid":"m"})").line(a_is_accepted);
  begin.line(R"({"t":5,"who":"s","do":"send","id":"b","to":"q","mid":"m"})");
  begin.line(R"({"t":6,"who":"s","do":"sent","id":"b","result":"accepted"})");
  constexpr auto both = R"({"t":1000,"do":"left","from":"q","ids":["a","b"]})";
  EXPECT_EQ(Story{begin}.line(both).wrong({.dedup = {"q"}}), "U");
  EXPECT_EQ(Story{begin}.line(both).wrong(), "") << "nobody looks for duplicates there";
  EXPECT_EQ(Story{begin}.line(a_is_left).wrong({.dedup = {"q"}}), "");
  EXPECT_EQ(Story{begin}.line(nothing_left).wrong({.dedup = {"q"}}), "LL") << "one of them has to be there";
  EXPECT_EQ(Story{}
                .line(R"({"t":0,"do":"entity","name":"q","dedup":3})")
                .line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","mid":"m"})")
                .line(a_is_accepted)
                .line(R"({"t":5,"who":"s","do":"send","id":"b","to":"q","mid":"m"})")
                .line(R"({"t":6,"who":"s","do":"sent","id":"b","result":"accepted"})")
                .line(both)
                .wrong(),
            "");
}

TEST(Checker, DuplicateThatWasLongUnderWayMayBeOutsideTheWindow) {
  Story begin;
  begin.line(R"({"t":0,"do":"entity","name":"q","dedup":21})");
  begin.line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","mid":"m"})");
  begin.line(R"({"t":5,"who":"s2","do":"send","id":"b","to":"q","mid":"m"})");
  begin.line(R"({"t":6,"who":"s2","do":"sent","id":"b","result":"accepted"})");
  constexpr auto both = R"({"t":1000,"do":"left","from":"q","ids":["a","b"]})";
  EXPECT_EQ(
      Story{begin}.line(R"({"t":31,"who":"s","do":"sent","id":"a","result":"accepted"})").line(both).wrong(),
      "");
  EXPECT_EQ(
      Story{begin}.line(R"({"t":20,"who":"s","do":"sent","id":"a","result":"accepted"})").line(both).wrong(),
      "U");
}

TEST(Checker, CommittedTransactionIsDoneAndARolledBackOneIsNot) {
  Story begin;
  begin.line(R"({"t":0,"who":"s","do":"begin","tx":"1"})");
  begin.line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","tx":"1"})").line(a_is_accepted);
  constexpr auto committed = R"({"t":5,"who":"s","do":"end","tx":"1","how":"commit","result":"accepted"})";
  constexpr auto refused = R"({"t":5,"who":"s","do":"end","tx":"1","how":"commit","result":"refused"})";
  constexpr auto back = R"({"t":5,"who":"s","do":"end","tx":"1","how":"rollback","result":"accepted"})";
  EXPECT_EQ(Story{begin}.line(committed).line(a_is_left).wrong(), "");
  EXPECT_EQ(Story{begin}.line(committed).line(nothing_left).wrong(), "T");
  EXPECT_EQ(Story{begin}.line(refused).line(a_is_left).wrong(), "T");
  EXPECT_EQ(Story{begin}.line(back).line(a_is_left).wrong(), "T");
  EXPECT_EQ(Story{begin}.line(back).line(nothing_left).wrong(), "");
  EXPECT_EQ(Story{begin}.line(nothing_left).wrong(), "") << "nobody knows";
}

TEST(Checker, TransactionOfUnknownEndIsWholeOrNotAtAll) {
  Story begin;
  begin.line(R"({"t":0,"who":"s","do":"send","id":"a","to":"q"})").line(a_is_accepted).line(got_a);
  begin.line(R"({"t":11,"who":"r","do":"begin","tx":"1"})");
  begin.line(R"({"t":12,"who":"r","do":"settle","id":"a","from":"q","seq":1,"how":"complete","tx":"1"})");
  begin.line(
      R"({"t":13,"who":"r","do":"settled","id":"a","from":"q","seq":1,"how":"complete","result":"accepted"})");
  begin.line(R"({"t":14,"who":"r","do":"send","id":"b","to":"p","tx":"1"})");
  begin.line(R"({"t":15,"who":"r","do":"sent","id":"b","result":"accepted"})");
  begin.line(R"({"t":20,"who":"r","do":"end","tx":"1","how":"commit","result":"unknown"})");
  constexpr auto b_is_there = R"({"t":1000,"do":"left","from":"p","ids":["b"]})";
  constexpr auto b_is_not_there = R"({"t":1000,"do":"left","from":"p","ids":[]})";
  EXPECT_EQ(Story{begin}.line(a_is_left).line(b_is_not_there).wrong(), "");
  EXPECT_EQ(Story{begin}.line(nothing_left).line(b_is_there).wrong(), "");
  EXPECT_EQ(Story{begin}.line(a_is_left).line(b_is_there).wrong(), "T");
  EXPECT_EQ(Story{begin}.line(nothing_left).line(b_is_not_there).wrong(), "T");
}

TEST(Checker, SettlementOfARolledBackTransactionDoesNotExcuseALoss) {
  Story begin;
  begin.line(send_a).line(a_is_accepted).line(got_a).line(R"({"t":11,"who":"r","do":"begin","tx":"1"})");
  begin.line(R"({"t":12,"who":"r","do":"settle","id":"a","from":"q","seq":1,"how":"complete","tx":"1"})");
  begin.line(
      R"({"t":13,"who":"r","do":"settled","id":"a","from":"q","seq":1,"how":"complete","result":"accepted"})");
  begin.line(R"({"t":20,"who":"r","do":"end","tx":"1","how":"rollback","result":"accepted"})");
  EXPECT_EQ(Story{begin}.line(nothing_left).wrong(), "L");
  EXPECT_EQ(Story{begin}.line(a_is_left).wrong(), "");
}

TEST(Checker, BatchIsWholeOrNotAtAll) {
  Story begin;
  begin.line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","batch":"1"})");
  begin.line(R"({"t":1,"who":"s","do":"send","id":"b","to":"q","batch":"1"})");
  EXPECT_EQ(Story{begin}.line(a_is_left).wrong(), "T");
  EXPECT_EQ(Story{begin}.line(nothing_left).wrong(), "");
}

TEST(Checker, CountsAreWhatIsThere) {
  Story begin;
  begin.line(send_a)
      .line(a_is_accepted)
      .line(a_is_left)
      .line(R"({"t":1000,"do":"left","from":"q/$DeadLetterQueue","ids":[]})");
  EXPECT_EQ(
      Story{begin}.line(R"({"t":1000,"do":"counts","from":"q","active":1,"dead":0,"scheduled":0})").wrong(),
      "");
  EXPECT_EQ(
      Story{begin}.line(R"({"t":1000,"do":"counts","from":"q","active":0,"dead":0,"scheduled":1})").wrong(),
      "");
  EXPECT_EQ(
      Story{begin}.line(R"({"t":1000,"do":"counts","from":"q","active":2,"dead":0,"scheduled":0})").wrong(),
      "C");
  EXPECT_EQ(
      Story{begin}.line(R"({"t":1000,"do":"counts","from":"q","active":1,"dead":1,"scheduled":0})").wrong(),
      "C");
}

TEST(Checker, ScheduledMessageIsNotServedEarly) {
  const auto begin = Story{}
                         .line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","at":11})")
                         .line(a_is_accepted)
                         .line(got_a)
                         .line(a_is_left);
  EXPECT_EQ(begin.wrong(), "S");
  EXPECT_EQ(begin.wrong({.slack = 1}), "");
}

TEST(Checker, ExpiredMessageIsNotServedLate) {
  const auto begin =
      Story{}.line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","ttl":7})").line(a_is_accepted);
  EXPECT_EQ(Story{begin}.line(got_a).line(nothing_left).wrong(), "X");
  EXPECT_EQ(Story{begin}.line(got_a).line(nothing_left).wrong({.late = 1}), "");
  EXPECT_EQ(Story{begin}.line(a_is_left).wrong(), "X");
  constexpr auto defer = R"({"t":5,"who":"r","do":"settle","id":"a","from":"q","seq":1,"how":"defer"})";
  EXPECT_EQ(Story{begin}.line(defer).line(a_is_left).wrong(), "");
  EXPECT_EQ(Story{begin}.line(nothing_left).wrong(), "");
  EXPECT_EQ(Story{}
                .line(R"({"t":1,"who":"s","do":"send","id":"a","to":"q","ttl":2000})")
                .line(a_is_accepted)
                .line(nothing_left)
                .wrong(),
            "L")
      << "its time is not over";
}

TEST(Checker, GhostsAreSeen) {
  EXPECT_EQ(Story{}.line(got_a).wrong(), "G") << "nobody sent it";
  EXPECT_EQ(Story{}.line(a_is_left).wrong(), "G");
  EXPECT_EQ(Story{}
                .line(send_a)
                .line(R"({"t":2,"who":"s","do":"sent","id":"a","result":"refused"})")
                .line(got_a)
                .wrong(),
            "G");
  EXPECT_EQ(Story{}
                .line(R"({"t":0,"do":"entity","name":"p"})")
                .line(R"({"t":1,"who":"s","do":"send","id":"a","to":"p"})")
                .line(got_a)
                .wrong(),
            "G")
      << "it went somewhere else";
}

TEST(Checker, CompletedMessageDoesNotComeBack) {
  Story begin;
  begin.line(send_a).line(a_is_accepted).line(got_a).line(complete_a).line(a_is_completed);
  EXPECT_EQ(Story{begin}
                .line(R"({"t":200,"who":"r2","do":"got","id":"a","from":"q","seq":1,"count":2,"until":300})")
                .line(nothing_left)
                .wrong(),
            "G");
  EXPECT_EQ(Story{begin}.line(a_is_left).wrong(), "G");
  EXPECT_EQ(Story{begin}.line(nothing_left).line(a_is_dead).wrong(), "G");
  EXPECT_EQ(Story{begin}.line(a_is_left).wrong({.retries = true}), "") << "its client may have sent it again";
}

TEST(Checker, OutcomeBelongsToTheSettlementOfItsKind) {
  Story begin;
  begin.line(send_a).line(a_is_accepted).line(got_a);
  begin.line(R"({"t":15,"who":"r","do":"settle","id":"a","from":"q","seq":1,"how":"abandon"})");
  begin.line(R"({"t":16,"who":"r","do":"got","id":"a","from":"q","seq":1,"count":2,"until":100})");
  begin.line(complete_a);
  begin.line(
      R"({"t":22,"who":"r","do":"settled","id":"a","from":"q","seq":1,"how":"abandon","result":"accepted"})");
  EXPECT_EQ(Story{begin}.line(a_is_left).wrong(), "") << "nobody knows of the complete";
  EXPECT_EQ(Story{begin}.line(a_is_completed).line(a_is_left).wrong(), "G");
}

TEST(Checker, DeadLetterIsInOnePlace) {
  Story begin;
  begin.line(send_a).line(a_is_accepted).line(got_a);
  begin.line(R"({"t":20,"who":"r","do":"settle","id":"a","from":"q","seq":1,"how":"dead-letter"})");
  begin.line(
      R"({"t":21,"who":"r","do":"settled","id":"a","from":"q","seq":1,"how":"dead-letter","result":"accepted"})");
  EXPECT_EQ(Story{begin}.line(nothing_left).line(a_is_dead).wrong(), "");
  EXPECT_EQ(Story{begin}.line(a_is_left).wrong(), "G");
  EXPECT_EQ(Story{begin}.line(nothing_left).wrong(), "L");
  EXPECT_EQ(
      Story{begin}
          .line(nothing_left)
          .line(
              R"({"t":30,"who":"r","do":"settle","id":"a","from":"q/$DeadLetterQueue","seq":1,"how":"complete"})")
          .wrong(),
      "");
}

TEST(Checker, OneSendIsOneMessage) {
  Story begin;
  begin.line(send_a).line(a_is_accepted).line(got_a);
  begin.line(R"({"t":30,"who":"r","do":"got","id":"a","from":"q","seq":2,"count":1,"until":100})")
      .line(a_is_left);
  EXPECT_EQ(begin.wrong(), "M");
  EXPECT_EQ(begin.wrong({.retries = true}), "");
}

}  // namespace
}  // namespace omnibus::sim
