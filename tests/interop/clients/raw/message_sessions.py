"""Message sessions on the wire: filters, waiting, freeing, state (contract 3.5, 6.9, 6.10)."""

import time

from peer import check_kind
from report import check
from talk import (ACCEPTED, SESSION_FILTER, TICKS_AT_EPOCH, Talk, check_array, message, now_ms, with_queue)
from wire.frames import frame, frame_text
from wire.values import (NULL, binary, boolean, described, int_, map_, string, text, timestamp, uint, ulong)

FILTER_CODE = ulong(0x137000000C)
NOT_ALLOWED = "amqp:not-allowed"
SESSION_LOST = "com.microsoft:session-lock-lost"


def described_filter(value):
    return described(FILTER_CODE, value)


def accepted(talk, handle, expected, seconds=5.0):
    """The attach of a session receiver, with the filter in the form that was asked for."""
    got = talk.attached(handle, seconds)
    source = got.field(5)
    check(source != NULL, "the session receiver was refused")
    filters = source.value[1].value[7]
    check(filters == map_((SESSION_FILTER, expected)), f"the filter is {text(filters)}, expected {text(expected)}")
    properties = {k.value: v for k, v in check_kind(got.field(13), "map", "properties")}
    ticks = check_kind(properties["com.microsoft:locked-until-utc"], "long", "com.microsoft:locked-until-utc")
    locked = (ticks - TICKS_AT_EPOCH) / 10000
    check(now_ms() < locked <= now_ms() + 61000, f"locked until {locked}, now it is {now_ms()}")
    return got


@with_queue("wire/session-needs-filter")
def session_needs_filter(talk, queue):
    for modes in ((0, 1), (1, 0)):
        talk.refused(talk.ask_receiver(queue, modes), NOT_ALLOWED)
    talk.receiver(f"{queue}/$DeadLetterQueue")  # which has no sessions


@with_queue("wire/filter-needs-session")
def filter_needs_session(talk, queue):
    for value in (string("s"), NULL):
        why = talk.refused(talk.ask_receiver(queue, filter_=value), NOT_ALLOWED)
    return why


def filters(talk, queue, form):
    talk.put(queue, message(b"for s", session="s"), message(b"for the empty name", session=""))
    named = talk.ask_receiver(queue, filter_=form(string("s")))
    accepted(talk, named, form(string("s")))
    [got] = talk.take(named)
    check(got.body == b"for s", f"body {got.body}")
    # An empty name is a name, and not "any".
    nameless = talk.ask_receiver(queue, filter_=form(string("")))
    accepted(talk, nameless, form(string("")))
    talk.detach(nameless)
    next_ = talk.ask_receiver(queue, filter_=form(NULL), timeout_ms=3000)
    accepted(talk, next_, form(string("")))  # the only one that is free and has messages
    with Talk() as other:
        other.refused(other.ask_receiver(queue, filter_=form(string("s"))), "com.microsoft:session-cannot-be-locked")


@with_queue("wire/session-filter-plain")
def session_filter_plain(talk, queue):
    filters(talk, queue, lambda value: value)


@with_queue("wire/session-filter-described")
def session_filter_described(talk, queue):
    filters(talk, queue, described_filter)


@with_queue("wire/session-state")
def session_state(talk, queue):
    session = ("session-id", string("s"))
    handle = talk.ask_receiver(queue, filter_=string("s"))
    accepted(talk, handle, string("s"))
    body = talk.ask(queue, "get-session-state", session).ok()
    check(body["session-state"] == NULL, f"a new session has the state {text(body['session-state'])}")
    check(not talk.ask(queue, "set-session-state", session, ("session-state", binary(b"\x00\xff"))).ok(), "not empty")
    check(talk.ask(queue, "get-session-state", session).ok()["session-state"] == binary(b"\x00\xff"), "another state")
    before = now_ms()
    expiration = talk.ask(queue, "renew-session-lock", session).ok()["expiration"]
    check(before + 60000 <= check_kind(expiration, "timestamp", "expiration") <= now_ms() + 60000, text(expiration))
    with Talk() as other:  # who does not hold the session
        other.ask(queue, "get-session-state", session).failed(410, SESSION_LOST)
        other.ask(queue, "renew-session-lock", session).failed(410, SESSION_LOST)
    talk.ask(queue, "set-session-state", session, ("session-state", NULL)).ok()
    check(talk.ask(queue, "get-session-state", session).ok()["session-state"] == NULL, "the state was not cleared")
    talk.detach(handle)
    talk.ask(queue, "set-session-state", session, ("session-state", binary(b"late"))).failed(410, SESSION_LOST)


@with_queue("wire/session-waits")
def session_waits(talk, queue):
    handle = talk.ask_receiver(queue, filter_=NULL, timeout_ms=10000)
    talk.credit(handle, 1)  # remembered until the link is there
    talk.silent()
    with Talk() as other:
        other.put(queue, message(b"at last", session="late"))
    accepted(talk, handle, string("late"))
    got = talk.delivery()
    check(got.body == b"at last", f"body {got.body}")
    talk.settled(ACCEPTED, got)


@with_queue("wire/session-time-out")
def session_time_out(talk, queue):
    started = time.monotonic()
    why = talk.refused(talk.ask_receiver(queue, filter_=NULL, timeout_ms=800), "com.microsoft:timeout", seconds=5)
    waited = time.monotonic() - started
    check(waited > 0.7, f"refused after {waited:.2f} s, asked to wait for 0.8 s")
    return why


@with_queue("wire/no-attach-after-detach")
def no_attach_after_detach(talk, queue):
    handle = talk.ask_receiver(queue, filter_=NULL, timeout_ms=60000)
    talk.send(frame(0, "detach", uint(handle), boolean(True)))
    # rhea ends the connection over a detach of a handle it was never told, so the broker may name one first, by an
    # attach that refuses; it must not attach in earnest.
    got = talk.item()
    while got.name in ("empty", "flow", "attach"):
        check(got.name != "attach" or got.field(5) == NULL, f"the link was accepted: {frame_text(got)}")
        got = talk.item()
    check(got.name == "detach", f"expected the answer to the detach, got {got.name}")
    with Talk() as other:
        other.ask_receiver(queue, filter_=NULL, timeout_ms=60000)
        other.send(frame(0, "end"))
        other.expect("end")
        talk.put(queue, message(b"m", session="s"))
        other.silent(1)
    talk.silent()
    # The session was not given to a link that is gone.
    accepted(talk, talk.ask_receiver(queue, filter_=NULL, timeout_ms=2000), string("s"))


@with_queue("wire/session-freed-by-detach")
def session_freed_by_detach(talk, queue):
    talk.put(queue, message(b"0", session="s"), message(b"1", session="s"))
    for _ in range(2):
        handle = talk.ask_receiver(queue, filter_=string("s"))
        accepted(talk, handle, string("s"))
        got = talk.take(handle, 2)
        check([(d.body, d.count) for d in got] == [(b"0", 0), (b"1", 0)], f"{[(d.body, d.count) for d in got]}")
        talk.detach(handle)
    with Talk() as other:
        accepted(other, other.ask_receiver(queue, filter_=string("s")), string("s"))
    # The connection is gone, and the lock with it, as soon as the broker has noticed.
    deadline = time.monotonic() + 3
    while True:
        handle = talk.ask_receiver(queue, filter_=string("s"))
        got = talk.attached(handle)
        if got.field(5) != NULL:
            return
        talk.expect("detach")
        talk.send(frame(0, "detach", uint(handle), boolean(True)))
        check(time.monotonic() < deadline, "the session of a connection that ended is still locked")
        time.sleep(0.05)


@with_queue("wire/message-sessions")
def message_sessions(talk, queue):
    everything = ("last-updated-time", timestamp(253402300800000))
    window = [("skip", int_(0)), ("top", int_(10))]
    talk.ask(queue, "get-message-sessions", everything, *window).failed(204, "com.microsoft:session-not-found")
    talk.put(queue, message(b"m", session="a"), message(b"m", session="b"), message(b"m", session="a"))
    body = talk.ask(queue, "get-message-sessions", everything, *window).ok()
    check(body["skip"] == int_(2), f"skip is {text(body['skip'])}")
    check(sorted(check_array(body["sessions-ids"], "string")) == ["a", "b"], text(body["sessions-ids"]))
    talk.ask(queue, "get-message-sessions", everything, ("skip", int_(2)), ("top", int_(10))).failed(
        204, "com.microsoft:session-not-found")
