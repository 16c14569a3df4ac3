"""The ledger itself: each kind of wrong must be noticed, and nothing else."""

from .ledger import ACTIVE, DEAD, DEFERRED, DUE_SECONDS, GONE, SCHEDULED, Ledger, body_of
from .moves import Moves


class Seen:
    def __init__(self, entry, number, state=0, **changed):
        self.key, self.session, self.number, self.state = entry.key, entry.session, number, state
        self.count, self.body = 0, body_of(entry.key, entry.size)
        self.reason = self.description = self.rule = self.routing_key = None
        self.properties = {}
        self.__dict__.update(changed)


class Story:
    """A ledger with one message that was accepted with number 1, and a clock that stands still."""

    def __init__(self, **how):
        self.now = 1000.0
        self.ledger = Ledger(clock=lambda: self.now)
        self.entry = self.send(**how)

    def send(self, answered=True, **how):
        entry = self.ledger.new("q", 50, **how)
        step = self.ledger.begin(entry, SCHEDULED if how.get("due") else ACTIVE)
        (self.ledger.done if answered else self.ledger.unknown)(step)
        return entry

    def look(self, *main, dead=()):
        self.ledger.look("q", list(main), list(dead))
        self.ledger.looked()
        return self.ledger.violations


STORIES = {}


def story(body):
    STORIES[body.__name__.replace("_", " ")] = body


@story
def an_accepted_message_is_there():
    s = Story()
    return not s.look(Seen(s.entry, 1))


@story
def an_accepted_message_is_lost():
    s = Story()
    return "lost" in s.look()[0]


@story
def an_unanswered_message_may_be_there_or_not():
    one, other = Story(), Story()
    first, second = one.send(answered=False), other.send(answered=False)
    return not one.look(Seen(one.entry, 1), Seen(first, 2)) and not other.look(Seen(other.entry, 1)) and second.places


@story
def what_was_absent_once_does_not_appear_later():
    s = Story()
    late = s.send(answered=False)
    return not s.look(Seen(s.entry, 1)) and "is active" in s.look(Seen(s.entry, 1), Seen(late, 2))[0]


@story
def what_was_there_once_does_not_disappear_later():
    s = Story()
    late = s.send(answered=False)
    return not s.look(Seen(s.entry, 1), Seen(late, 2)) and "lost" in s.look(Seen(s.entry, 1))[0]


@story
def a_completed_message_comes_back():
    s = Story()
    s.ledger.delivered("q", Seen(s.entry, 1))
    s.ledger.done(s.ledger.begin(s.entry, GONE))
    return "is active" in s.look(Seen(s.entry, 1))[0]


@story
def a_completed_message_is_delivered_again():
    s = Story()
    s.ledger.delivered("q", Seen(s.entry, 1))
    s.ledger.done(s.ledger.begin(s.entry, GONE))
    s.ledger.delivered("q", Seen(s.entry, 1))
    return "was delivered" in s.ledger.violations[0]


@story
def an_unanswered_completion_may_go_either_way():
    for seen in ([], [1]):
        s = Story()
        s.ledger.delivered("q", Seen(s.entry, 1))
        s.ledger.unknown(s.ledger.begin(s.entry, GONE))
        if s.look(*(Seen(s.entry, n) for n in seen)):
            return False
    return True


@story
def a_refused_completion_changes_nothing():
    s = Story()
    s.ledger.delivered("q", Seen(s.entry, 1))
    s.ledger.refused(s.ledger.begin(s.entry, GONE))
    return not s.look(Seen(s.entry, 1)) and "lost" in s.look()[0]


@story
def a_message_is_there_twice():
    s = Story()
    return "twice" in s.look(Seen(s.entry, 1), dead=[Seen(s.entry, 1)])[0]


@story
def a_message_nobody_sent_is_there():
    s = Story()
    return "nobody" in s.look(Seen(s.entry, 1), Seen(s.entry, 2, key="stranger"))[0]


@story
def a_number_is_used_twice():
    s = Story()
    other = s.send()
    return any("has or had" in v for v in s.look(Seen(s.entry, 1), Seen(other, 1)))


@story
def a_number_changes():
    s = Story()
    return not s.look(Seen(s.entry, 1)) and "changed" in s.look(Seen(s.entry, 2))[0]


@story
def a_body_is_damaged():
    s = Story()
    return "another body" in s.look(Seen(s.entry, 1, body=b"?" + body_of(s.entry.key, 50)[1:]))[0]


@story
def a_deferred_message_is_active_again():
    s = Story()
    s.ledger.delivered("q", Seen(s.entry, 1))
    s.ledger.done(s.ledger.begin(s.entry, DEFERRED))
    return not s.look(Seen(s.entry, 1, state=1)) and "is active" in s.look(Seen(s.entry, 1))[0]


@story
def a_dead_letter_loses_its_reason():
    s = Story()
    s.ledger.delivered("q", Seen(s.entry, 1))
    s.entry.reason = ("r", "d")
    s.ledger.done(s.ledger.begin(s.entry, DEAD))
    return (not s.look(dead=[Seen(s.entry, 1, reason="r", description="d")])
            and "because" in s.look(dead=[Seen(s.entry, 1, reason="r")])[0])


@story
def a_dead_letter_is_received_before_its_answer_is_read():
    s = Story()
    s.ledger.delivered("q", Seen(s.entry, 1))
    dying = s.ledger.begin(s.entry, DEAD)
    s.ledger.delivered("q", Seen(s.entry, 1), DEAD)
    s.ledger.done(s.ledger.begin(s.entry, GONE))
    s.ledger.done(dying)
    return s.entry.places == {GONE} and not s.look()


@story
def an_acknowledged_abandon_is_not_counted():
    s = Story()
    s.ledger.delivered("q", Seen(s.entry, 1))
    s.entry.abandoned += 1
    return not s.look(Seen(s.entry, 1, count=1)) and "count 0" in s.look(Seen(s.entry, 1))[0]


@story
def a_delivery_is_counted_that_never_was():
    s = Story()
    return "count 1" in s.look(Seen(s.entry, 1, count=1))[0]


@story
def an_unseen_delivery_before_a_crash_may_count():
    s = Story()
    s.ledger.crashed()
    return not s.look(Seen(s.entry, 1, count=1)) and "count 2" in s.look(Seen(s.entry, 1, count=2))[0]


@story
def a_batch_is_there_by_half():
    s = Story()
    one, _ = s.send(answered=False, group="g"), s.send(answered=False, group="g")
    return "of a batch" in s.look(Seen(s.entry, 1), Seen(one, 2))[0]


@story
def a_batch_is_there_as_a_whole_or_not_at_all():
    s, t = Story(), Story()
    both = s.send(answered=False, group="g"), s.send(answered=False, group="g")
    t.send(answered=False, group="g")
    return not s.look(Seen(s.entry, 1), Seen(both[0], 2), Seen(both[1], 3)) and not t.look(Seen(t.entry, 1))


@story
def a_link_sent_in_another_order():
    s = Story()
    first, second = s.send(stream="l"), s.send(stream="l")
    return "was sent after" in s.look(Seen(s.entry, 1), Seen(second, 2), Seen(first, 3))[0]


@story
def a_scheduled_message_waits_and_is_activated():
    s = Story(due=2000.0)
    waits = not s.look(Seen(s.entry, 1, state=2))
    s.now = 2000.0
    return waits and not s.look(Seen(s.entry, 7))


@story
def a_scheduled_message_is_missing_before_its_time_or_long_after_it():
    s, t = Story(due=2000.0), Story(due=2000.0)
    t.now = 2000.0
    changes = not t.look()
    t.now += DUE_SECONDS
    return changes and "is lost" in s.look()[0] and "never came" in t.look()[0]


@story
def a_scheduled_message_comes_too_early():
    s = Story(due=2000.0)
    s.ledger.delivered("q", Seen(s.entry, 7))
    return "before its time" in s.ledger.violations[0]


@story
def a_deleted_message_may_vanish_within_the_credit_only():
    s = Story()
    s.send()
    s.ledger.vanishing["q"] = 1
    return len(s.look()) == 1


@story
def a_session_forgets_its_state():
    s = Story()
    s.ledger.state_begin("s", b"1")
    s.ledger.state_done("s", b"1")
    s.ledger.state_begin("s", b"2")
    s.ledger.state_seen("s", b"1")
    fine = not s.ledger.violations
    s.ledger.state_seen("s", b"2")
    return fine and "state is" in s.ledger.violations[0]


@story
def a_copy_is_at_one_subscription_and_not_at_the_other():
    s = Story()
    one = s.send(answered=False, group="g")
    other = s.ledger.new("r", 50, one.key, group="g")
    s.ledger.unknown(s.ledger.begin(other, ACTIVE))
    s.ledger.look("r", [], [])
    return "of a batch" in s.look(Seen(s.entry, 1), Seen(one, 2))[0]


@story
def copies_of_two_rules_are_two_messages():
    s = Story()
    copy = s.send(key=s.entry.key, rule="double", properties={"twice": 4})
    both = Seen(s.entry, 1), Seen(copy, 2, rule="double", properties={"twice": 4})
    return not s.look(*both) and "is lost" in s.look(both[0])[0]


@story
def an_action_does_something_else():
    s = Story(rule="double", properties={"twice": 4})
    return "properties" in s.look(Seen(s.entry, 1, rule="double", properties={"twice": 5}))[0]


@story
def a_message_shows_another_routing_key():
    s = Story(routing_key="a.b")
    return not s.look(Seen(s.entry, 1, routing_key="a.b")) and "routing key" in s.look(Seen(s.entry, 1))[0]


@story
def what_is_scheduled_at_a_topic_comes_or_is_missed():
    s, t = Story(due=2000.0, hidden=True), Story(due=2000.0, hidden=True)
    waits = not s.look() and not t.look()
    s.now = t.now = 2000.0
    comes = not s.look(Seen(s.entry, 7)) and not t.look()
    t.now = 2000.0 + DUE_SECONDS
    return waits and comes and "never came" in t.look()[0]


@story
def a_broker_that_was_down_gets_time_for_what_is_due():
    s = Story(due=1500.0, hidden=True)
    s.now = 2000.0
    s.ledger.started()
    return not s.look() and not s.look(Seen(s.entry, 7))


@story
def a_message_expires_in_its_time():
    s = Story(ttl=10)
    early = "is dead" in Story(ttl=10).look(dead=[Seen(s.entry, 1, reason="TTLExpiredException")])[0]
    s.now += 10
    return early and not s.look(dead=[Seen(s.entry, 1, reason="TTLExpiredException")])


@story
def an_expired_message_has_another_reason():
    s = Story(ttl=10)
    s.now += 10
    return "because" in s.look(dead=[Seen(s.entry, 1, reason="?")])[0]


@story
def a_message_outlives_its_time():
    s = Story(ttl=10)
    s.now += 10 + DUE_SECONDS
    fine = not s.look(Seen(s.entry, 1))
    s.now += 1
    return fine and "outlived" in s.look(Seen(s.entry, 1))[0]


@story
def a_message_from_another_store_may_come_once_more_after_a_crash():
    s = Story()
    s.ledger.repeating.add("q")
    s.ledger.delivered("q", Seen(s.entry, 1))
    s.ledger.done(s.ledger.begin(s.entry, GONE))
    s.ledger.crashed()
    again = s.ledger.delivered("q", Seen(s.entry, 2))
    fine = not s.look(Seen(s.entry, 2)) and again is not s.entry
    return fine and "is lost" in s.look()[0]


@story
def a_message_from_another_store_comes_twice_without_a_crash():
    s = Story()
    s.ledger.repeating.add("q")
    return "forwarded 2 times" in s.look(Seen(s.entry, 1), Seen(s.entry, 2))[0]


@story
def a_message_of_the_same_store_is_forwarded_twice():
    s = Story()
    s.ledger.crashed()
    return "twice" in s.look(Seen(s.entry, 1), Seen(s.entry, 2))[0]


@story
def a_dropped_duplicate_is_there_after_all():
    s = Story()
    s.ledger.delivered("q", Seen(s.entry, 1))
    s.ledger.done(s.ledger.begin(s.entry, GONE))
    return "is active" in s.look(Seen(s.entry, 2))[0]


@story
def what_never_came_can_be_sent_again():
    s = Story()
    late = s.send(answered=False)
    s.look(Seen(s.entry, 1))
    s.ledger.revive(late)
    s.ledger.done(s.ledger.begin(late, ACTIVE))
    return not s.look(Seen(s.entry, 1), Seen(late, 2)) and "is lost" in s.look(Seen(s.entry, 1))[0]


def _moved(left, came):
    """Violations when a commit without an answer has moved this much."""
    s = Story()
    moves, new = Moves(s.ledger), s.send(answered=False)
    s.ledger.unknown(s.ledger.begin(s.entry, GONE))
    moves.undecided.append((s.entry, [new]))
    s.ledger.look("q", [*([] if left else [Seen(s.entry, 1)]), *([Seen(new, 2)] if came else [])], [])
    moves.looked()
    return s.ledger.violations


@story
def a_transaction_has_happened_or_not():
    return not _moved(left=False, came=False) and not _moved(left=True, came=True)


@story
def a_transaction_has_happened_in_part():
    return "in part" in _moved(left=True, came=False)[0] and "in part" in _moved(left=False, came=True)[0]


@story
def kills_that_left_no_commit_in_doubt_prove_little():
    moves = Moves(Story().ledger)
    nothing, moves.committed = moves.idle(50), 9
    few, many, moves.decided = moves.idle(49), moves.idle(50), 1
    return "nothing was committed" in nothing[0] and not few and "in doubt" in many[0] and not moves.idle(50)


def failures():
    """The stories that do not end as they should."""
    return [name for name, body in STORIES.items() if not body()]
