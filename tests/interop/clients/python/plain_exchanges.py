"""Qpid Proton (Python) with exchanges. Scenario names: runner/scenarios.py, shapes: runner/topics.py."""

import urllib.parse

from proton import Delivery, Message, symbol
from proton.reactor import AtMostOnce
from proton.utils import LinkDetached, SendException

from plain_queues import WAIT, inbox, nothing, pause, put, same, settle, take, with_queue
from report import check

NOT_FOUND, NOT_ALLOWED, INVALID = "amqp:not-found", "amqp:not-allowed", "amqp:invalid-field"


def below(name, subscription):
    return f"{name}/Subscriptions/{subscription}"


def keyed(key):
    return Message(body="no key") if key is None else Message(body=key, subject=key)


def headed(body, **headers):
    return Message(body=body, properties=headers)


def accepted(connection, address, *messages):
    sender = connection.create_sender(address)
    for message in messages:
        same(sender.send(message).remote_state, Delivery.ACCEPTED, "outcome")
    sender.close()


def holds(connection, address, *expected):
    """Takes and accepts exactly these messages, in this order; nothing else is there."""
    receiver = inbox(connection, address)
    receiver.link.flow(len(expected) + 5)
    got = []
    for _ in expected:
        got.append(receiver.receive(timeout=WAIT))
        receiver.accept()
    same([m.body for m in got], list(expected), address)
    pause(connection, 0.3)
    check(not receiver.fetcher.has_message, f"one too many in {address}")
    receiver.close()
    return got


def refused(condition, attach, address):
    try:
        attach(address)
    except LinkDetached as e:
        check(e.condition == condition, f"expected {condition}, got {e.condition}: {e}")
        return str(e)
    raise AssertionError(f"the link to {address} was accepted, expected {condition}")


def routed_by(message):
    return message.annotations.get("x-exchange"), message.annotations.get("x-routing-key")


@with_queue("exchange/direct")
def direct(connection, name):
    accepted(connection, name, *map(keyed, ("red", "blue", "Red", "green", None)))
    for subscription, expected in (("red", "red"), ("red2", "red"), ("blue", "blue"), ("no-key", "no key")):
        holds(connection, below(name, subscription), expected)


@with_queue("exchange/topic")
def topic(connection, name):
    keys = ["order.eu.paid", "order.us.paid", "order.eu", "order.eu.late.paid", "invoice"]
    accepted(connection, name, *map(keyed, keys), keyed(None))
    holds(connection, below(name, "all"), *keys, "no key")
    holds(connection, below(name, "paid"), "order.eu.paid", "order.us.paid")
    holds(connection, below(name, "eu"), "order.eu.paid", "order.eu", "order.eu.late.paid")


@with_queue("exchange/fanout")
def fanout(connection, name):
    accepted(connection, name, keyed("some"), keyed(None))
    accepted(connection, f"{name}/other", Message(body="to a key"))
    for subscription in ("a", "b", "c"):
        holds(connection, below(name, subscription), "some", "no key", "to a key")


@with_queue("exchange/headers-all")
def headers_all(connection, name):
    accepted(connection, name, headed("h1", site="gdansk", severity=1, other="x"), headed("h2", site="gdansk"),
             headed("h3", ticket=None), headed("h4", urgent=True, severity=1.0), headed("h5", urgent="true"),
             headed("h6", site=symbol("gdansk"), severity=1.0, ticket=""), headed("h7", site="gdansk", severity="1"),
             Message(body="h8"))
    holds(connection, below(name, "two"), "h1", "h6")
    holds(connection, below(name, "present"), "h3", "h6")  # present, be it null
    holds(connection, below(name, "flag"), "h4")


@with_queue("exchange/headers-any")
def headers_any(connection, name):
    accepted(connection, name, headed("h1", site="gdansk"), headed("h2", severity=1),
             headed("h3", site="sopot", severity=2), headed("h4", site=b"gdansk"), Message(body="h5"))
    holds(connection, below(name, "any"), "h1", "h2", "h4")
    holds(connection, below(name, "none"))


@with_queue("exchange/key-in-address")
def key_in_address(connection, name):
    accepted(connection, f"{name}/red", Message(body="m1", subject="blue"), Message(body="m2"))
    accepted(connection, f"/{name}/red", Message(body="m3"))
    accepted(connection, f"{name.upper()}/red", Message(body="m4"))
    accepted(connection, f"{name}/eu.paid", Message(body="m5"))
    accepted(connection, f"{name}/eu%2Epaid", Message(body="m6"))
    accepted(connection, f"{name}/RED", Message(body="for nobody"))  # keys have a letter case
    first = holds(connection, below(name, "red"), "m1", "m2", "m3", "m4")[0]
    same(first.subject, "blue", "subject")  # plain data here
    holds(connection, below(name, "dotted"), "m5", "m6")
    holds(connection, below(name, "no-key"))


@with_queue("exchange/exchanges-address")
def exchanges_address(connection, name):
    accepted(connection, f"/exchanges/{name}/red", Message(body="m1", subject="blue"))
    accepted(connection, f"/exchanges/{name}/r%65d", Message(body="m2"))
    accepted(connection, f"/exchanges/{name}", Message(body="m3", subject="red"))  # no key, whatever the subject
    holds(connection, below(name, "red"), "m1", "m2")
    holds(connection, below(name, "no-key"), "m3")
    refused(INVALID, connection.create_sender, f"/exchanges/{name}/red/more")
    refused(INVALID, connection.create_sender, f"/queues/{name}/more")
    return refused(NOT_FOUND, connection.create_sender, "/exchanges/no-such/red")


@with_queue("exchange/annotations")
def annotations(connection, name):
    forged = Message(body="forged", subject="c",
                     annotations={symbol("x-exchange"): "other", symbol("x-routing-key"): "other",
                                  symbol("x-mine"): "kept"})
    accepted(connection, name, keyed("a.b"), keyed(None), forged)
    accepted(connection, f"{name}/by.address", Message(body="address", subject="s", properties={"kept": "yes"}))
    got = holds(connection, below(name, "all"), "a.b", "no key", "forged", "address")
    same([routed_by(m) for m in got], [(name, key) for key in ("a.b", "", "c", "by.address")], "annotations")
    same(got[2].annotations["x-mine"], "kept", "the sender's own annotation")
    same((got[3].subject, got[3].properties), ("s", {"kept": "yes"}), "the message itself")
    same(got[3].annotations["x-opt-sequence-number"], 4, "sequence number")


@with_queue("exchange/unroutable-accept")
def unroutable_accept(connection, name):
    accepted(connection, name, keyed("green"), keyed("red"))
    holds(connection, below(name, "red"), "red")


@with_queue("exchange/unroutable-release")
def unroutable_release(connection, name):
    sender, outcomes = connection.create_sender(name), []
    for key in ("green", "red", None):
        try:
            outcomes.append(sender.send(keyed(key)).remote_state)
        except SendException as e:
            outcomes.append(e.state)
    same(outcomes, [Delivery.RELEASED, Delivery.ACCEPTED, Delivery.RELEASED], "outcomes")
    holds(connection, below(name, "red"), "red")


@with_queue("exchange/alternate")
def alternate(connection, name):
    sender, outcomes = connection.create_sender(name), []
    for key in ("blue", "red", "green.1", "grey"):
        try:
            outcomes.append(sender.send(keyed(key)).remote_state)
        except SendException as e:
            outcomes.append(e.state)
    same(outcomes, [Delivery.ACCEPTED] * 3 + [Delivery.RELEASED], "outcomes")
    accepted(connection, f"{name}/green.2", Message(body="by address", subject="red"))
    accepted(connection, f"{name}-1", keyed("green.3"))
    holds(connection, below(name, "red"), "red")
    same(routed_by(holds(connection, below(f"{name}-1", "blue"), "blue")[0]), (f"{name}-1", "blue"), "annotations")
    got = holds(connection, below(f"{name}-2", "green"), "green.1", "by address", "green.3")
    same([routed_by(m) for m in got], [(f"{name}-2", f"green.{n}") for n in (1, 2, 3)], "annotations")


@with_queue("exchange/prefetch")
def prefetch(connection, name):
    put(connection, name, *(f"m{n}" for n in range(6)))
    first = inbox(connection, below(name, "two"))
    first.link.flow(10)
    same([first.receive(timeout=WAIT).body for _ in range(2)], ["m0", "m1"], "held")
    nothing(connection, first, 0)  # there is credit, but it holds two
    second = inbox(connection, below(name, "two"))
    second.link.flow(10)
    same([second.receive(timeout=WAIT).body for _ in range(2)], ["m2", "m3"], "another consumer")
    settle(connection, first, Delivery.ACCEPTED)  # m0
    same(first.receive(timeout=WAIT).body, "m4", "after one was settled")
    nothing(connection, first, 0)
    settle(connection, first, Delivery.RELEASED)  # m1: free for a consumer that may hold one more
    same(first.receive(timeout=WAIT).body, "m1", "after one was released")
    settled = inbox(connection, below(name, "two"), options=AtMostOnce())
    settled.link.flow(5)
    same(settled.receive(timeout=WAIT).body, "m5", "pre-settled")
    unlimited = inbox(connection, below(name, "unlimited"))
    unlimited.link.flow(10)
    same([unlimited.receive(timeout=WAIT).body for _ in range(6)], [f"m{n}" for n in range(6)], "without a limit")


@with_queue("exchange/queues-address")
def queues_address(connection, name):
    def alias(address):
        return f"/queues/{urllib.parse.quote(address, safe='')}"

    put(connection, name, "m0", "m1")
    receiver = inbox(connection, alias(below(name, "a")))
    same(take(receiver)[0].body, "m0", "body")
    settle(connection, receiver, Delivery.REJECTED)
    receiver.close()
    holds(connection, alias(f"{below(name, 'a')}/$DeadLetterQueue"), "m0")
    holds(connection, f"/{below(name, 'a')}", "m1")
    return refused(NOT_FOUND, connection.create_receiver, "/queues/no-such")


@with_queue("exchange/dead-letter")
def dead_letter(connection, name):
    put(connection, name, "bad")
    receiver = inbox(connection, below(name, "a"))
    take(receiver)
    settle(connection, receiver, Delivery.REJECTED)
    nothing(connection, receiver)
    (letter,) = holds(connection, f"{below(name, 'a')}/$DeadLetterQueue", "bad")
    same(routed_by(letter), (name, ""), "annotations")
    holds(connection, f"{below(name, 'b')}/$DeadLetterQueue")
    holds(connection, below(name, "b"), "bad")


@with_queue("topic/publish")
def publish(connection, name):
    accepted(connection, name, Message(body="m0", subject="s", properties={"n": 1.5}), Message(body="m1"))
    for subscription in ("a", "b"):
        first = holds(connection, below(name, subscription), "m0", "m1")[0]
        same((first.subject, first.properties), ("s", {"n": 1.5}), "message")
        same(routed_by(first), (None, None), "annotations of an exchange")
    refused(NOT_ALLOWED, connection.create_receiver, name)
    refused(NOT_ALLOWED, connection.create_sender, below(name, "a"))
    refused(NOT_FOUND, connection.create_sender, f"{name}/key")  # a topic has no keys
    return refused(NOT_FOUND, connection.create_receiver, below(name, "no-such"))
