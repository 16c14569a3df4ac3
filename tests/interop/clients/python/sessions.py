"""azure-servicebus with message sessions. Scenario names: runner/scenarios.py."""

import datetime
import time

from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import OperationTimeoutError, ServiceBusError, SessionCannotBeLockedError

from queues import DEAD, LOCK, UTC, connected, gone, nothing, raises, same, sees, send, take, take_one, text, with_queue
from report import check


def into(session, *bodies):
    return [ServiceBusMessage(body, session_id=session) for body in bodies]


def accept(client, queue, session, **options):
    return client.get_queue_receiver(queue, session_id=session, **options)


@with_queue("session/accept-named")
def accept_named(client, queue):
    send(client, queue, *into("a", "for a"), *into("b", "for b"))
    with accept(client, queue, "b") as receiver:
        same(receiver.session.session_id, "b", "session id")
        check(receiver.session.locked_until_utc > datetime.datetime.now(UTC), "the lock is over already")
        got = take_one(receiver)
        same((text(got), got.session_id), ("for b", "b"), "message")
        receiver.complete_message(got)
        nothing(receiver)
    with accept(client, queue, "empty") as receiver:  # a session need not have messages
        nothing(receiver)


@with_queue("session/accept-next")
def accept_next(client, queue):
    send(client, queue, *into("only", "hello"))
    with accept(client, queue, NEXT_AVAILABLE_SESSION, max_wait_time=5) as receiver:
        same(receiver.session.session_id, "only", "session id")
        got = take_one(receiver)
        same(text(got), "hello", "body")
        receiver.complete_message(got)


@with_queue("session/accept-next-time-out")
def accept_next_time_out(client, queue):
    started = time.monotonic()
    why = raises(OperationTimeoutError, accept(client, queue, NEXT_AVAILABLE_SESSION, max_wait_time=2).__enter__)
    check(time.monotonic() - started < 10, "it took longer than 10 s")
    return why


@with_queue("session/order")
def order(client, queue):
    send(client, queue, *(m for n in range(20) for m in into("x", f"x{n}") + into("y", f"y{n}")))
    for session in ("y", "x"):
        with accept(client, queue, session) as receiver:
            got = take(receiver, 20)
            same([text(m) for m in got], [f"{session}{n}" for n in range(20)], "order")
            for message in got:
                receiver.complete_message(message)
            sees(receiver, [])


@with_queue("session/state")
def state(client, queue):
    with accept(client, queue, "s") as receiver:
        check(not receiver.session.get_state(), "a new session has a state")
        receiver.session.set_state(b"\x00 step 1 \xff")
        same(receiver.session.get_state(), b"\x00 step 1 \xff", "state")
    with accept(client, queue, "other") as receiver:
        check(not receiver.session.get_state(), "another session has the state")
    with accept(client, queue, "s") as receiver:
        same(receiver.session.get_state(), b"\x00 step 1 \xff", "state after accepting again")
        receiver.session.set_state(None)
        check(not receiver.session.get_state(), "the state was not cleared")


@with_queue("session/renew")
def renew(client, queue):
    send(client, queue, *into("r", "long work"))
    with accept(client, queue, "r") as receiver:
        got = take_one(receiver)
        until, end = receiver.session.locked_until_utc, time.monotonic() + LOCK + 3
        while time.monotonic() < end:
            time.sleep(1.5)
            renewed = receiver.session.renew_lock()
            check(renewed > until, f"the lock ended {until}, renewed until {renewed}")
            until = renewed
        receiver.complete_message(got)
        sees(receiver, [])


@with_queue("session/locked-by-another")
def locked_by_another(client, queue):
    with connected() as second:
        with accept(client, queue, "mine"):
            why = raises(SessionCannotBeLockedError, accept(second, queue, "mine").__enter__)
        with accept(second, queue, "mine") as receiver:  # free again
            same(receiver.session.session_id, "mine", "session id")
    return why


@with_queue("session/deferral")
def deferral(client, queue):
    send(client, queue, *into("d", "later", "now"))
    with accept(client, queue, "d") as receiver:
        first = take_one(receiver)
        receiver.defer_message(first)
        second = take_one(receiver)
        same(text(second), "now", "after the deferral")
        receiver.complete_message(second)
        got = receiver.receive_deferred_messages(first.sequence_number)
        same([(text(m), m.session_id, m.state) for m in got], [("later", "d", ServiceBusMessageState.DEFERRED)],
             "by number")
        receiver.complete_message(got[0])
        sees(receiver, [])


@with_queue("session/dead-letter")
def dead_letter(client, queue):
    send(client, queue, *into("d", "poison"))
    with accept(client, queue, "d") as receiver:
        receiver.dead_letter_message(take_one(receiver), reason="r", error_description="d")
        sees(receiver, [])
    with client.get_queue_receiver(queue, **DEAD) as receiver:  # the dead-letter queue has no sessions
        dead = take_one(receiver)
        same((text(dead), dead.session_id, dead.dead_letter_reason), ("poison", "d", "r"), "dead letter")
        receiver.complete_message(dead)
    gone(client, queue, **DEAD)


@with_queue("session/missing-id-refused")
def missing_id_refused(client, queue):
    why = raises(ServiceBusError, send, client, queue, "nobody's")
    check("amqp:not-allowed" in why, f"refused for another reason: {why}")
    send(client, queue, *into("s", "somebody's"))
    with accept(client, queue, "s") as receiver:
        got = take_one(receiver)
        same(text(got), "somebody's", "body")
        receiver.complete_message(got)
    return why


@with_queue("session/list")
def list_(client, queue):
    send(client, queue, *into("one", "m"), *into("two", "m", "m"))
    with accept(client, queue, "three") as receiver:
        receiver.session.set_state(b"state")
    same(sorted(client.list_queue_sessions(queue)), ["one", "three", "two"], "sessions")
