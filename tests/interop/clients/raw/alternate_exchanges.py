"""What exchanges do with messages that match nothing: the way along alternates (exchanges contract 2.4)."""

from exchange_links import below, bodies, dated
from report import check, context
from talk import ACCEPTED, BATCH_FORMAT, DATA, RELEASED, check_array, message, now_ms, with_queue
from transfers import refused_send
from wire.values import binary, described, encode, list_, map_, string, text, ulong


def sent(talk, handle, body, key, state, **more):
    got = talk.outcome(talk.post(handle, message(body, subject=key, **more)))
    check(got == state, f"{body} to {key}: {text(got)}")


def sent_batch(talk, handle, *keys):
    inner = [message(b"%d" % n, subject=key) for n, key in enumerate(keys)]
    payload = b"".join(encode(described(ulong(DATA), binary(m))) for m in inner)
    return talk.outcome(talk.post(handle, payload, BATCH_FORMAT))


def taken(talk, entity, *expected):
    got = [m.body for m in talk.take(talk.receiver(entity), len(expected))]
    check(got == list(expected), f"{entity}: {got}")


@with_queue("exchange/alternate-batch")
def batch(talk, exchange):
    handle = talk.sender(exchange)
    check(sent_batch(talk, handle, "grey", "white") == RELEASED, "nobody wants any of them")
    check(sent_batch(talk, handle, "green", "white") == ACCEPTED, "all go to the last")
    check(sent_batch(talk, handle, "blue", "green", "red", "grey") == ACCEPTED, "three exchanges, and one for nobody")
    check(sent_batch(talk, handle, "blue", "green") == ACCEPTED, "two exchanges")
    check(bodies(talk, below(exchange, "red")) == [b"2"], f"{bodies(talk, below(exchange, 'red'))}")
    # What an exchange keeps for its alternate follows behind the outcome, so that these are waited for.
    taken(talk, below(f"{exchange}-1", "blue"), b"0", b"0")
    got = sorted(m.body for m in talk.take(talk.receiver(below(f"{exchange}-2", "green")), 3))
    check(got == [b"0", b"1", b"1"], f"{got}")
    talk.silent(0.3)


@with_queue("exchange/alternate-by-itself")
def by_itself(talk, exchange):
    """Messages nobody waits for: from a queue that forwards, scheduled by annotation and by $management."""
    source = context["sources"]["exchange/alternate-by-itself"]
    talk.put(source, message(b"1", subject="blue"), message(b"2", subject="green.x"), message(b"3", subject="grey"))
    taken(talk, below(f"{exchange}-1", "blue"), b"1")
    taken(talk, below(f"{exchange}-2", "green"), b"2")
    taken(talk, f"{source}/$DeadLetterQueue", b"3")  # the last exchange releases; there is no sender to go back to
    due = now_ms() + 800
    talk.put(exchange, dated(due, b"4", subject="green"), dated(due, b"5", subject="red"))
    talk.put(f"{exchange}/blue", dated(due, b"6"))
    numbers = check_array(talk.ask(exchange, "schedule-message", ("messages", list_(*(
        map_((string("message-id"), string("i")), (string("message"), binary(dated(when, body, subject="blue"))))
        for when, body in ((due, b"7"), (now_ms() - 1000, b"past")))))).ok()["sequence-numbers"], "long")
    check(len(numbers) == 2, f"{numbers}")
    taken(talk, below(f"{exchange}-1", "blue"), b"past")
    early = bodies(talk, below(f"{exchange}-1", "blue"))
    check(not {b"6", b"7"} & set(early) or now_ms() >= due, f"before its time: {early}")
    taken(talk, below(f"{exchange}-1", "blue"), b"6", b"7")
    taken(talk, below(f"{exchange}-2", "green"), b"4")
    taken(talk, below(exchange, "red"), b"5")
    check(now_ms() >= due, "before its time")


@with_queue("exchange/alternate-duplicates")
def duplicates(talk, exchange):
    handle = talk.sender(exchange)
    for body in (b"1", b"again", b"once more"):
        sent(talk, handle, body, "blue", ACCEPTED, message_id="i")
    sent(talk, handle, b"2", "blue", ACCEPTED, message_id="j")
    there = bodies(talk, below(f"{exchange}-1", "blue"))
    check(there == [b"1", b"2"], f"{there}")


@with_queue("exchange/alternate-ends")
def ends(talk, exchange):
    handle = talk.sender(exchange)
    for key, state in (("red", ACCEPTED), ("step1", ACCEPTED), ("step8", ACCEPTED), ("step9", RELEASED)):
        sent(talk, handle, key.encode(), key, state)
    check(bodies(talk, below(f"{exchange}-8", "s")) == [b"step8"], "eight steps")
    check(bodies(talk, below(f"{exchange}-9", "s")) == [], "nine steps")
    # From the second on there are eight steps to the ninth and its alternate, the first: nobody wants it there.
    other = talk.sender(f"{exchange}-2")
    for key, state in (("step9", ACCEPTED), ("red", ACCEPTED), ("step1", RELEASED)):
        sent(talk, other, b"2 " + key.encode(), key, state)
    check(bodies(talk, below(exchange, "red")) == [b"red", b"2 red"], f"{bodies(talk, below(exchange, 'red'))}")
    check(bodies(talk, below(f"{exchange}-1", "s")) == [b"step1"], "a step too far")


@with_queue("exchange/alternate-closed")
def closed(talk, exchange):
    """The refusal of an alternate is the sender's to hear, and a transfer that is kept in part is accepted whole."""
    handle = talk.sender(exchange)
    refused_send(talk, handle, message(b"1", subject="grey"), "com.microsoft:entity-disabled")
    sent(talk, handle, b"2", "blue", ACCEPTED)
    talk.post(handle, message(b"3", subject="blue"), settled=True)
    check(sent_batch(talk, handle, "red", "grey") == ACCEPTED, "a part of it is kept")
    check(bodies(talk, below(exchange, "red")) == [b"0"], "the part that matched")
    taken(talk, below(f"{exchange}-1", "blue"), b"2", b"3")
