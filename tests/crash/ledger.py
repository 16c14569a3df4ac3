"""What the broker has said, and therefore what may be found in it.

A message is in one place: nowhere, active, deferred, scheduled, dead-lettered, or gone. The ledger keeps
for each message the places it may be in. While an answer is outstanding, or lost with the broker, that is
the old place or the new one; an answer leaves one. Looking at the broker after a restart decides what was
open, and from then on that is certain too: nothing may change its mind twice.

Where a message ends is a queue or a subscription. A copy of a published message is an entry of its own, under
the message's key and, when the action of a rule made it, the rule's name.
"""

import itertools
import time

ABSENT, ACTIVE, DEFERRED, SCHEDULED, DEAD, GONE = "absent", "active", "deferred", "scheduled", "dead", "gone"
SOMEWHERE = {ACTIVE, DEFERRED, SCHEDULED, DEAD}
STATES = {0: ACTIVE, 1: DEFERRED, 2: SCHEDULED}
# A broker that runs has this long to do by itself what is due: to expire, to activate, to copy.
DUE_SECONDS = 5
EXPIRED = ("TTLExpiredException", None)


def body_of(key, size):
    """The body a message must have: any other byte is damage."""
    pattern = f"{key} {size} ".encode()
    return (pattern * (size // len(pattern) + 1))[:size]


def name_of(key, rule):
    return f"{key} by {rule}" if rule else key


class Entry:
    """`rule` made this copy; `properties` are all it has, `routing_key` what it shows, if they are known.
    `hidden`: what is scheduled cannot be seen, for it is at the topic. `ttl`: then it is a dead letter."""

    def __init__(self, key, queue, size, *, session=None, due=None, stream=None, group=None, rule=None,
                 properties=None, routing_key=None, hidden=False, ttl=None, reason=None):
        self.key, self.queue, self.size, self.session, self.due = key, queue, size, session, due
        self.stream, self.group = stream, group
        self.name = name_of(key, rule)
        self.properties, self.routing_key, self.hidden, self.ttl = properties, routing_key, hidden, ttl
        self.sent = self.answered = None  # when, if its time is limited
        self.places = {ABSENT}
        self.pending = []
        self.number = None  # its sequence number, once seen
        self.scheduled_number = None
        self.abandoned = 0  # acknowledged
        self.deliveries = 0  # seen by us
        self.born = 0  # how many crashes there had been
        self.reason = reason  # and description, of a dead letter; None: any
        self.again = 0  # copies more than one, where forwarding may make some

    def may_be(self):
        return self.places.union(step.target for step in self.pending)


class Step:
    """A change that was asked for and not answered yet."""

    def __init__(self, entry, target, from_nothing=False):
        self.entry, self.target, self.from_nothing = entry, target, from_nothing
        self.proved = False


class Ledger:
    def __init__(self, clock=time.time):
        self.clock = clock
        self.entries = {}  # by queue and name
        self.repeating = set()  # queues that get messages from another store: at least once
        self.ready_at = clock()  # since when the broker runs
        self.found = {}  # queue -> {name: place} of this look
        self.numbers = {}  # (queue, number) -> name
        self.states = {}  # session -> values it may have
        self.groups = {}  # batches without an answer: group -> keys
        self.streams = {}  # stream -> entries in the order they were sent, since the last look
        self.live = {}  # queue -> {name: entry} of what may still be somewhere
        self.vanishing = {}  # queue -> how many pre-settled deliveries may have been lost on the way
        self.crashes = 0
        self.violations = []
        self.names = itertools.count(1)
        self.answered = 0

    def violation(self, entry, text):
        if isinstance(entry, Entry):
            places = "/".join(sorted(entry.may_be()))
            self.violations.append(f"{entry.queue}: {entry.name} {text} (may be {places}, number {entry.number})")
        else:
            self.violations.append(f"{entry}: {text}")

    # What the load says.

    def new_key(self, queue):
        return f"{queue}-{next(self.names)}"

    def new(self, queue, size, key=None, **how):
        entry = Entry(key or self.new_key(queue), queue, size, **how)
        self._add(entry)
        if entry.stream is not None:
            self.streams.setdefault((entry.stream, queue), []).append(entry)
        if entry.group is not None:
            self.groups.setdefault(entry.group, []).append(entry)
        return entry

    def _add(self, entry):
        entry.born = self.crashes
        entry.sent = self.clock()
        self.entries[entry.queue, entry.name] = entry
        self.live.setdefault(entry.queue, {})[entry.name] = entry

    def revive(self, entry):
        """It never came to be, and is sent once more."""
        self.live.setdefault(entry.queue, {})[entry.name] = entry

    def begin(self, entry, target):
        step = Step(entry, target, ABSENT in entry.places and entry.places <= {ABSENT})
        entry.pending.append(step)
        return step

    def _forget(self, step):
        if step in step.entry.pending:
            step.entry.pending.remove(step)

    def done(self, step):
        """The broker said that it happened."""
        self._forget(step)
        self.answered += 1
        if step.from_nothing:
            step.entry.answered = self.clock()
        if not step.proved:
            step.entry.places = {step.target}
            self._bury(step.entry)

    def refused(self, step):
        """The broker said that it did not happen."""
        self._forget(step)
        if step.proved:
            self.violation(step.entry, f"was refused ({step.target}), and happened")
        elif step.from_nothing:
            self._bury(step.entry)

    def unknown(self, step):
        """Nobody said anything."""
        self._forget(step)
        if not step.proved:
            step.entry.places = step.entry.places | {step.target}

    def _bury(self, entry):
        if not entry.may_be() & SOMEWHERE:
            self.live.get(entry.queue, {}).pop(entry.name, None)

    def _prove(self, entry, place):
        """It is in this place now, so every change that leads there has happened."""
        targets = {place}
        if place == ACTIVE and entry.due is not None and self.clock() >= entry.due:
            targets.add(SCHEDULED)  # activated
        if place == DEAD and entry.ttl is not None and self.clock() >= entry.sent + entry.ttl:
            targets.add(ACTIVE)  # expired
            entry.reason = EXPIRED
        proving = [step for step in entry.pending if step.target in targets]
        if not proving and not entry.places & targets:
            return False
        for step in proving:
            step.proved = True
            entry.pending.remove(step)
        entry.places = {place}
        return True

    def group_answered(self, group):
        self.groups.pop(group, None)

    def _check_message(self, entry, seen, place):
        if seen.body != body_of(entry.key, entry.size):
            self.violation(entry, "came with another body")
        if seen.session != entry.session:
            self.violation(entry, f"came in session {seen.session}, not {entry.session}")
        if entry.properties is not None and seen.properties != entry.properties:
            self.violation(entry, f"came with properties {seen.properties}, not {entry.properties}")
        if entry.routing_key is not None and seen.routing_key != entry.routing_key:
            self.violation(entry, f"came with routing key {seen.routing_key!r}, not {entry.routing_key!r}")
        if place == DEAD and entry.reason and (
                seen.reason != entry.reason[0] or entry.reason[1] not in (None, seen.description)):
            self.violation(entry, f"is dead because of {(seen.reason, seen.description)}, not {entry.reason}")
        if place == ACTIVE and entry.ttl is not None and entry.answered is not None and \
                self.clock() > max(entry.answered + entry.ttl, self.ready_at) + DUE_SECONDS:
            self.violation(entry, "has outlived its time")
        most = entry.deliveries + self.crashes - entry.born
        if not entry.abandoned <= seen.count <= most:
            self.violation(entry, f"has delivery count {seen.count}, expected {entry.abandoned} to {most}")
        owner = self.numbers.setdefault((entry.queue, seen.number), entry.name)
        if owner != entry.name:
            self.violation(entry, f"has number {seen.number}, which {owner} has or had")
        known = entry.scheduled_number if place == SCHEDULED else entry.number
        if known is not None and known != seen.number:
            self.violation(entry, f"changed its number to {seen.number}")
        if place == SCHEDULED:
            entry.scheduled_number = seen.number
        else:
            entry.number = seen.number

    def _find(self, queue, seen):
        """The entry of a message that is at `queue`, or None when nobody sent it there."""
        entry = self.entries.get((queue, name_of(seen.key, seen.rule)))
        if queue not in self.repeating or entry is None or entry.number in (None, seen.number):
            return entry
        known = self.numbers.get((queue, seen.number))
        if known is not None:
            return self.entries[queue, known]
        # Accepted at the target, and the broker died before the source knew: once more with each crash, at most.
        entry.again += 1
        if entry.again > self.crashes - entry.born:
            self.violation(entry, f"was forwarded {entry.again + 1} times, with {self.crashes - entry.born} crashes")
        copy = Entry(entry.key, queue, entry.size)
        copy.name = f"{entry.name} for the {entry.again + 1}. time"
        copy.places = {ACTIVE}
        self._add(copy)
        copy.born = entry.born
        return copy

    def delivered(self, queue, seen, place=ACTIVE):
        """A receiver got it. Returns the entry, or None when nobody sent it."""
        entry = self._find(queue, seen)
        if entry is None:
            self.violation(queue, f"a message nobody sent was delivered: {name_of(seen.key, seen.rule)}")
            return None
        if place == ACTIVE and entry.due is not None and self.clock() < entry.due:
            self.violation(entry, "was delivered before its time")
        elif not self._prove(entry, place):
            self.violation(entry, f"was delivered as {place}")
            entry.places = {place}
        self._check_message(entry, seen, place)
        entry.deliveries += 1
        return entry

    def removed(self, entry):
        """A pre-settled delivery arrived: the message is gone with it."""
        entry.places = {GONE}
        self._bury(entry)

    # What a session's state may be.

    def state_begin(self, session, value):
        self.states.setdefault(session, {None}).add(value)

    def state_done(self, session, value):
        self.states[session] = {value}
        self.answered += 1

    def state_seen(self, session, value):
        if value not in self.states.setdefault(session, {None}):
            self.violation(session, f"the session's state is {value!r}, may be {self.states[session]}")
        self.states[session] = {value}

    # What looking at everything says.

    def crashed(self):
        self.crashes += 1

    def started(self):
        self.ready_at = self.clock()

    def look(self, queue, main, dead):
        """`main` and `dead` are all messages a queue and its dead-letter queue hold, in order; no client is at work."""
        found = {}
        for seen, in_dead in [*((m, False) for m in main), *((m, True) for m in dead)]:
            place = DEAD if in_dead else STATES.get(seen.state, f"state {seen.state}")
            entry = self._find(queue, seen)
            if entry is None:
                self.violation(queue, f"holds a message nobody sent: {name_of(seen.key, seen.rule)} as {place}")
                continue
            if entry.name in found:
                # While we were looking it may have become due, and then it has a new number, or have expired.
                before = found[entry.name]
                if not (before == SCHEDULED and place == ACTIVE and entry.due is not None
                        or before == ACTIVE and place == DEAD and entry.ttl is not None):
                    self.violation(entry, f"is there twice, as {before} and as {place}")
            found[entry.name] = place
            if not self._prove(entry, place):
                self.violation(entry, f"is {place}")
                entry.places = {place}
                self.live.setdefault(queue, {})[entry.name] = entry
            self._check_message(entry, seen, place)
        for numbers in ([m.number for m in main], [m.number for m in dead]):
            if numbers != sorted(numbers):
                self.violation(queue, f"peek is not in order: {numbers}")
        self._look_for_lost(queue, found)
        self._look_at_streams(queue)
        self.found[queue] = found

    def looked(self):
        """All queues and subscriptions were looked at: what belongs together is there together."""
        self._look_at_groups()
        self.found.clear()

    def _look_for_lost(self, queue, found):
        may_vanish = self.vanishing.pop(queue, 0)
        for name, entry in list(self.live.get(queue, {}).items()):
            if name in found:
                continue
            # While it changes its number, from scheduled to active, nobody sees it.
            if SCHEDULED in entry.places and (entry.hidden or entry.due <= self.clock()) and \
                    self.clock() < max(entry.due, self.ready_at) + DUE_SECONDS:
                continue  # the next look will tell
            if entry.places == {SCHEDULED} and entry.due <= self.clock():
                self.violation(entry, "was scheduled and never came")
                entry.places = {GONE}
                self._bury(entry)
                continue
            if entry.places & {ABSENT, GONE}:
                entry.places &= {ABSENT, GONE}
            elif may_vanish > 0:
                may_vanish -= 1
                entry.places = {GONE}
            else:
                self.violation(entry, "is lost")
                entry.places = {GONE}
            self._bury(entry)

    def _look_at_groups(self):
        """A transfer without an answer, with all its messages and copies, is there as a whole or not at all."""
        for group, entries in list(self.groups.items()):
            if any(e.hidden and SCHEDULED in e.places for e in entries):
                continue  # later
            del self.groups[group]
            # What was delivered was there; what is absent for certain was not.
            there = [e for e in entries if e.name in self.found[e.queue] or e.deliveries]
            never = [e for e in entries if e.name not in self.found[e.queue] and not e.deliveries
                     and e.places == {ABSENT}]
            if there and never:
                self.violation(never[0].queue, f"of a batch {len(there)} messages are there and {len(never)} are not: "
                                               f"{never[0].name}")

    def _look_at_streams(self, queue):
        """What one link sent has ascending numbers."""
        for stream, entries in list(self.streams.items()):
            if stream[1] != queue:
                continue
            del self.streams[stream]
            numbered = [e for e in entries if e.number is not None and e.due is None]
            for before, after in zip(numbered, numbered[1:]):
                if before.number >= after.number:
                    self.violation(after, f"was sent after {before.key}, which has number {before.number}")

    def count(self, queue, place):
        return sum(1 for e in self.live.get(queue, {}).values() if e.places == {place} and not e.pending)
