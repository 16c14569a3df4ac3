"""The entities of the run, and who does what with them."""

from crash.flows import STORES, store_of

LOCK_SECONDS = 5
DEDUP_SECONDS = 600
PLAIN, PARTED, SESSIONS, DEDUP, OUTBOX, INBOX = "plain", "parted", "sessions", "dedup", "outbox", "inbox"
# One in every store, for messages so large that they fill a disk.
BULK = tuple(next(f"bulk{n}" for n in range(100) if store_of(f"bulk{n}") == store) for store in range(STORES))
QUEUES = (PLAIN, PARTED, SESSIONS, DEDUP, OUTBOX, INBOX, *BULK)
TOPIC, SUBSCRIPTIONS = "news", ("all", "copy")
PLACES = (*QUEUES, *(f"{TOPIC}/Subscriptions/{name}" for name in SUBSCRIPTIONS))
# The longest that a message may be scheduled ahead, live or be locked, and a bit: after that nothing changes by itself.
SETTLE_SECONDS = 7

# Locks are as short as they can be, delivery counts high: a broker that is killed often counts many attempts.
COMMON = {"LockDuration": f"PT{LOCK_SECONDS}S", "MaxDeliveryCount": 2000, "DefaultMessageTimeToLive": "P1D"}

assert store_of(OUTBOX) != store_of(INBOX)  # a transaction is to need two stores


def config():
    """Of the namespace in Config.json."""
    more = {SESSIONS: {"RequiresSession": True}, PARTED: {"EnablePartitioning": True},
            DEDUP: {"RequiresDuplicateDetection": True,
                    "DuplicateDetectionHistoryTimeWindow": f"PT{DEDUP_SECONDS // 60}M"}}
    return {
        "Queues": [{"Name": name, "Properties": {**COMMON, **more.get(name, {})}} for name in QUEUES],
        "Topics": [{"Name": TOPIC, "Properties": {"DefaultMessageTimeToLive": "P1D"},
                    "Subscriptions": [{"Name": name, "Properties": COMMON} for name in SUBSCRIPTIONS]}]}


def entities():
    """What the checker must know of them: the fields of `entity` lines."""
    lock = LOCK_SECONDS * 1_000_000
    for name in QUEUES:
        yield {"name": name, "lock": lock, **({"dedup": DEDUP_SECONDS * 1_000_000} if name == DEDUP else {})}
    yield {"name": TOPIC, "lock": lock, "subscriptions": [place for place in PLACES if place.startswith(TOPIC)]}


def send(to, rate, **how):
    return {"role": "send", "to": to, "rate": rate, **how}


def receive(queue, **how):
    return {"role": "receive", "from": queue, **how}


def copies(**how):
    return [receive(TOPIC, subscription=name, **how) for name in SUBSCRIPTIONS]


def roles(rate):
    """By client program; `rate` is what one sender sends in a second, about."""
    return {
        "python-senders": ("python", [
            send(PLAIN, rate, later=0.05, mortal=0.05), send(PARTED, rate, keys=20), send(PARTED, rate / 2),
            send(SESSIONS, rate, sessions=6), send(DEDUP, rate, dedup=True),
            send(TOPIC, rate / 2, topic=True, later=0.05), send(OUTBOX, rate)]),
        "python-receivers": ("python", [
            receive(PLAIN), receive(PARTED), receive(PARTED), receive(DEDUP),
            *copies(), receive(INBOX), receive(PLAIN, dead=True), *copies(dead=True)]),
        "js": ("js", [
            send(PLAIN, rate, later=0.05, mortal=0.05), send(PARTED, rate, keys=20), send(SESSIONS, rate, sessions=6),
            send(DEDUP, rate, dedup=True), send(TOPIC, rate / 2, later=0.05),
            receive(PLAIN), receive(PARTED), receive(DEDUP), *copies(), receive(INBOX), receive(PARTED, dead=True),
            receive(SESSIONS, dead=True), receive(DEDUP, dead=True), receive(INBOX, dead=True)]),
        # On their own, so that the end of a connection is the end of their sessions and of nothing else.
        "python-sessions": ("python", [{"role": "sessions", "from": SESSIONS}]),
        "js-sessions": ("js", [{"role": "sessions", "from": SESSIONS}] * 2),
        "go": ("go", [send(DEDUP, rate, dedup=True), receive(PLAIN), receive(PARTED), receive(DEDUP), *copies(),
                      receive(PLAIN, dead=True)]),
        "java": ("java", [{"role": "move", "from": OUTBOX, "to": [INBOX, TOPIC], "topic": TOPIC}] * 2),
        "transactions": ("raw", [{"role": "move", "from": OUTBOX, "to": [INBOX, TOPIC], "movers": 2}]),
    }
