"""Leaves messages of every kind in the queue whose counts the administration clients compare."""

import time

from management import peek
from report import check, context, scenario
from talk import ACCEPTED, DEFERRED, Talk, message, now_ms, rejected
from transactions import VIA
from wire.values import described, list_, map_, string, symbol, text, timestamp, ulong


def send_via(talk, queue, destination, count, body):
    """Messages for `destination` that `queue` keeps until they are there."""
    link = talk.attach(False, described(ulong(0x28), list_(string("raw"))),
                       described(ulong(0x29), list_(string(queue))), (2, 0), map_((symbol(VIA), string(destination))))
    talk.attached(link)
    talk.frame("flow")
    for _ in range(count):
        state = talk.outcome(talk.post(link, message(body)))
        check(state == ACCEPTED, f"not accepted: {text(state)}")


@scenario("counts/prepared")
def prepared():
    queue = context["counted"]["queue"]
    active, dead, scheduled, transfers, transfer_dead = context["counted"]["counts"]
    with Talk(profile="counts") as talk:
        talk.put(queue, *[message(b"x")] * (active + dead))
        receiver = talk.receiver(queue)
        taken = talk.take(receiver, dead + 1)
        for delivery in taken[:dead]:
            talk.settled(rejected(), delivery)
        talk.settled(DEFERRED, taken[dead])
        talk.detach(receiver)
        due = timestamp(now_ms() + 3600 * 1000)
        talk.put(queue, *[message(b"later", annotations={"x-opt-scheduled-enqueue-time": due})] * scheduled)
        # One destination is full: they wait. The other wants sessions: it never takes them.
        send_via(talk, queue, queue + "-full", transfers, bytes(16 * 1024))
        send_via(talk, queue, queue + "-sessions", transfer_dead, b"x")
        graves = f"{queue}/$Transfer/$DeadLetterQueue"
        deadline = time.monotonic() + 10
        while len(there(talk, graves)) < transfer_dead:
            check(time.monotonic() < deadline, "the transfers that are refused are not among the dead letters")
            time.sleep(0.1)


def there(talk, address):
    reply = peek(talk, address, count=100)
    return reply.body["messages"].value if reply.status == 200 else []
