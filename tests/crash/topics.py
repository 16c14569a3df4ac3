"""Topics under load: publishers, receivers of subscriptions, rules that come and go, scheduled messages.

Which subscription gets which message is decided here once more, in Python, and each copy is an entry of the
ledger. Copies of a transfer without an answer are all there or none of them. What is scheduled cannot be
seen before its time; that it is there is known when it comes, or when it can be cancelled.
"""

import asyncio
import re
import time

from wire.values import array, binary, int_, list_, long_, map_, string

from . import amqp
from .amqp import Lost, Management, Refused, Sender
from .flows import store_of
from .ledger import ABSENT, ACTIVE, DEAD, GONE, SCHEDULED, body_of
from .load import FAR_SECONDS, receive_dead, receive_work

NEWS, ROUTES = "news", "routes"
ALL, LARGE, BLUE, CHANGED, UNREAD, RULED, ONWARD = (
    f"{NEWS}/Subscriptions/{name}" for name in ("all", "large", "blue", "changed", "unread", "ruled", "onward"))
EVERY, PAID, AUDIT, AWAY = (f"{ROUTES}/Subscriptions/{name}" for name in ("every", "paid", "audit", "away"))
BROUGHT, TAKEN = "brought", "taken"  # where ONWARD and AWAY forward to: the same store, another store
READ = (ALL, LARGE, BLUE, CHANGED, RULED, EVERY, PAID, AUDIT, BROUGHT, TAKEN)
PLACES = (*READ, UNREAD)
SOURCES = (ONWARD, AWAY)
UNREAD_MAX, FAR_MAX, ALL_MAX = 200, 30, 200
LANES = range(4)
COLOURS, SUBJECTS = ("red", "green", "blue"), ("alarm", "almost", "note")
PATTERNS = {EVERY: "#", PAID: "order.*.paid", AUDIT: "audit.#", AWAY: "order.#"}
KEYS = ("order.eu.paid", "order.us.paid", "order.us.open", "order.paid", "order", "audit", "audit.login.bad", "x", "")

assert store_of(NEWS) == store_of(BROUGHT) and store_of(ROUTES) != store_of(TAKEN)


def _sql(name, expression, action=None):
    properties = {"FilterType": "Sql", "SqlFilter": {"SqlExpression": expression}}
    if action:
        properties["Action"] = {"SqlExpression": action}
    return {"Name": name, "Properties": properties}


def config(common):
    """Queues, topics and exchanges of Config.json."""
    def subscription(place, rules=(), **properties):
        return {"Name": place.split("/")[-1], "Properties": {**common, **properties}, "Rules": list(rules)}
    blue = {"Name": "blue", "Properties": {"FilterType": "Correlation", "CorrelationFilter": {
        "Label": "alarm", "Properties": {"colour": "blue"}}}}
    news = [
        {"Name": "all", "Properties": common},
        subscription(LARGE, [_sql("large", "n > 60 AND colour <> 'red' OR sys.Label LIKE 'al%t'")]),
        subscription(BLUE, [blue]),
        subscription(CHANGED, [_sql("plain", "n < 30"),
                               _sql("double", "colour = 'green'", "SET twice = n + n; REMOVE colour")]),
        subscription(UNREAD, [_sql("unread", "100 / (n % 10) > 20")]),
        subscription(RULED, [_sql("never", "1 = 0")]),
        subscription(ONWARD, [_sql("red", "colour = 'red'")], ForwardTo=BROUGHT),
    ]
    routes = [{"Name": place.split("/")[-1], "RoutingKey": pattern,
               "Broker": {**common, **({"ForwardTo": TAKEN} if place == AWAY else {})}}
              for place, pattern in PATTERNS.items()]
    return {
        "Queues": [{"Name": name, "Properties": common} for name in (BROUGHT, TAKEN)],
        "Topics": [{"Name": NEWS, "Properties": {"RequiresDuplicateDetection": True,
                                                 "DuplicateDetectionHistoryTimeWindow": "P1D",
                                                 "DefaultMessageTimeToLive": "P1D"},
                    "Subscriptions": news}],
        "Exchanges": [{"Name": ROUTES, "Type": "Topic", "Subscriptions": routes}],
    }


def matches(pattern, key):
    """Whether a binding of a Topic exchange takes a routing key."""
    if pattern == "#":
        return True
    text = re.escape(pattern).replace(r"\.\#", r"(\..*)?").replace(r"\*", r"[^.]*")
    return re.fullmatch(text, key) is not None


class Message:
    """One that is published: what it says, and its entries."""

    def __init__(self, key, size, n, colour, subject, lane=-1):
        self.key, self.size, self.n, self.colour, self.subject, self.lane = key, size, n, colour, subject, lane
        self.entries = []

    def properties(self):
        return {"n": self.n, "colour": self.colour, "lane": self.lane}

    def encoded(self, due=None):
        return amqp.message(self.key, body_of(self.key, self.size), due=due, subject=self.subject,
                            properties=self.properties())

    def copies(self):
        """(place, target, how) of each copy, without those of RULED."""
        whole = {"properties": self.properties()}
        yield ALL, ACTIVE, whole
        if self.n > 60 and self.colour != "red" or self.subject == "almost":
            yield LARGE, ACTIVE, whole
        if self.subject == "alarm" and self.colour == "blue":
            yield BLUE, ACTIVE, whole
        if self.n < 30:
            yield CHANGED, ACTIVE, whole
        if self.colour == "green":
            yield CHANGED, ACTIVE, {"rule": "double", "properties": {"n": self.n, "twice": 2 * self.n,
                                                                     "lane": self.lane}}
        if self.n % 10 == 0:
            yield UNREAD, DEAD, {**whole, "reason": ("FilterException", None)}
        elif 100 // (self.n % 10) > 20:
            yield UNREAD, ACTIVE, whole
        if self.colour == "red":
            yield BROUGHT, ACTIVE, whole


class Topics:
    """What outlives a life of the broker, beside the ledger."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.published = []  # messages to NEWS; answered or decided by a look
        self.open = []  # those that are not
        self.lanes = {lane: False for lane in LANES}  # whether RULED has a rule for it; None: nobody knows
        self.versions = {lane: 0 for lane in LANES}  # changes that were asked for
        self.far = []  # (number, message): scheduled for long after the end
        ledger.repeating.add(TAKEN)

    def actors(self, world):
        return (self.publish(world), self.publish(world), self.publish_batches(world), self.schedule(world),
                self.change_rules(world), self.route(world), self.route(world, "order.eu.paid"),
                self.route(world, "audit.login"),
                *(receive_work(world, place) for place in (*READ, ALL)),
                *(receive_dead(world, place) for place in (ALL, CHANGED, EVERY)))

    # Publishing to the topic.

    def new_message(self, world, lane=True, dead=True):
        crowded = len(self.ledger.live.get(UNREAD, ())) >= UNREAD_MAX
        while True:
            n = world.random.randrange(100)
            if (n % 10 < 5 and crowded) or (n % 10 == 0 and not dead):
                continue
            return Message(self.ledger.new_key(NEWS), world.size(), n, world.random.choice(COLOURS),
                           world.random.choice(SUBJECTS), world.random.choice(LANES) if lane else -1)

    def post(self, world, link, messages, batch=False):
        """Writes the messages as one transfer; the future is the outcome."""
        group, steps, in_lanes = f"{link.name}-{link.count}", [], []
        for message in messages:
            for place, target, how in message.copies():
                entry = self.ledger.new(place, message.size, message.key, group=group,
                                        stream=None if place == BROUGHT else link.name, **how)
                message.entries.append(entry)
                steps.append(self.ledger.begin(entry, target))
            entry = self.ledger.new(RULED, message.size, message.key, properties=message.properties(),
                                    stream=link.name)
            in_lanes.append((message.lane, self.lanes[message.lane], self.versions[message.lane],
                             self.ledger.begin(entry, ACTIVE)))
        payloads = [message.encoded() for message in messages]
        future = link.post(amqp.batch(payloads), amqp.BATCH_FORMAT) if batch else link.post(payloads[0])
        self.open += messages

        def published():
            for message in messages:
                self.open.remove(message)
                self.published.append(message)
        world.follow(future, amqp.check_outcome, *steps, group=group, then=published)
        future.add_done_callback(lambda done: self._ruled(done, in_lanes))
        return future

    def _ruled(self, done, in_lanes):
        """The copies of RULED: certain where the rule was, and no change was asked for in between."""
        try:
            amqp.check_outcome(done.result())
            outcome = "accepted"
        except (Lost, asyncio.CancelledError):
            outcome = "lost"
        except Refused:
            outcome = "refused"
        for lane, there, version, step in in_lanes:
            certain = there is not None and self.versions[lane] == version
            if outcome == "refused" or certain and not there:
                self.ledger.refused(step)
            elif outcome == "accepted" and certain:
                self.ledger.done(step)
            else:
                self.ledger.unknown(step)

    async def publish(self, world):
        link = Sender(await world.connect(), NEWS)
        while True:
            await link.ready()
            await world.room(ALL, ALL_MAX)
            if self.published and world.random.random() < 0.1:
                # Once more, from this life or one before: accepted, and dropped.
                old = world.random.choice(self.published[-200:])
                world.follow(link.post(old.encoded()), amqp.check_outcome)
                continue
            future = self.post(world, link, [self.new_message(world)])
            if world.random.random() < 0.3:
                await asyncio.wait([future])
            await asyncio.sleep(world.random.random() * 0.01)

    async def publish_batches(self, world):
        link = Sender(await world.connect(), NEWS)
        while True:
            await link.ready()
            await world.room(ALL, ALL_MAX)
            messages = [self.new_message(world) for _ in range(world.random.randint(2, 10))]
            await asyncio.wait([self.post(world, link, messages, batch=True)])
            await asyncio.sleep(world.random.random() * 0.1)

    async def schedule(self, world):
        management = Management(await world.connect(), NEWS)
        await management.ready()
        ledger = self.ledger
        while True:
            await asyncio.sleep(world.random.random() * 0.1)
            if len(self.far) > FAR_MAX or len(self.far) > FAR_MAX / 2 and world.random.random() < 0.5:
                number, message = self.far.pop(world.random.randrange(len(self.far)))
                world.follow(management.post("cancel-scheduled-message",
                                             ("sequence-numbers", array("long", long_(number)))),
                             lambda a: Management.checked(*a),
                             *(ledger.begin(entry, GONE) for entry in message.entries))
                continue
            await world.room(ALL, ALL_MAX)
            far = world.random.random() < 0.4
            due = int((time.time() + (FAR_SECONDS if far else 0.2 + world.random.random())) * 1000) / 1000
            message = self.new_message(world, lane=False, dead=False)
            # A copy of its own for each subscription, all or none; they cannot be seen before they are due.
            message.entries = [ledger.new(place, message.size, message.key, due=due, hidden=True, group=message.key,
                                          **how) for place, _, how in message.copies()]
            steps = [ledger.begin(entry, SCHEDULED) for entry in message.entries]
            request = ("messages", list_(map_((string("message-id"), string(message.key)),
                                              (string("message"), binary(message.encoded(due))))))

            def numbered(answer, far=far, message=message):
                [number] = Management.checked(*answer)["sequence-numbers"].value[2]
                if far:
                    self.far.append((number.value, message))
            world.follow(management.post("schedule-message", request), numbered, *steps, group=message.key)

    # Rules.

    async def change_rules(self, world):
        management = Management(await world.connect(), RULED)
        await management.ready()
        while True:
            await asyncio.sleep(world.random.random() * 0.2)
            lane = world.random.choice(LANES)
            there = self.lanes[lane]
            if there is None:
                continue  # not answered yet
            self.lanes[lane] = None
            self.versions[lane] += 1
            name = ("rule-name", string(f"lane-{lane}"))
            if there:
                future = management.post("remove-rule", name)
            elif world.random.random() < 0.5:
                future = management.post("add-rule", name, ("rule-description", map_((string("sql-filter"), map_(
                    (string("expression"), string(f"lane = {lane}")))))))
            else:
                future = management.post("add-rule", name, ("rule-description", map_((
                    string("correlation-filter"), map_((string("properties"), map_((string("lane"), long_(lane)))))))))

            def changed(lane=lane, there=there):
                self.lanes[lane] = not there
            world.follow(future, lambda a: Management.checked(*a), then=changed)

    async def look_at_rules(self, connection):
        """What was added is there, what was removed is not; what had no answer is known from here on."""
        body = await Management(connection, RULED).request("enumerate-rules", ("top", int_(100)), ("skip", int_(0)))
        names = set()
        for one in body["rules"].value:
            [(_, description)] = one.value
            names.add(description.value[1].value[2].value)
        if "never" not in names:
            self.ledger.violation(RULED, f"a rule of the configuration is gone; there are {sorted(names)}")
        for lane, there in self.lanes.items():
            found = f"lane-{lane}" in names
            if there not in (None, found):
                self.ledger.violation(RULED, f"the rule lane-{lane} is {'there' if found else 'gone'}")
            self.lanes[lane] = found
        if strange := names - {"never", *(f"lane-{lane}" for lane in LANES)}:
            self.ledger.violation(RULED, f"has rules nobody added: {sorted(strange)}")

    def looked(self):
        """What had no answer and is there after all counts as published: sent again, it is dropped."""
        self.published += [m for m in self.open if any(e.places != {ABSENT} for e in m.entries)]
        self.open.clear()

    # Routing through the exchange.

    async def route(self, world, key=None):
        """By the subject of each message, or by the address."""
        link = Sender(await world.connect(), ROUTES if key is None else f"{ROUTES}/{key}")
        while True:
            await link.ready()
            await world.room(EVERY)
            group, steps, payloads = f"{link.name}-{link.count}", [], []
            count = 1 if world.random.random() < 0.8 else world.random.randint(2, 6)
            for _ in range(count):
                subject = world.random.choice(KEYS)
                wanted = subject if key is None else key
                name, size = self.ledger.new_key(ROUTES), world.random.randint(20, 120)
                for place, pattern in PATTERNS.items():
                    if not matches(pattern, wanted):
                        continue
                    if place == AWAY:  # it may be there more than once, so it is no part of the whole
                        entry = self.ledger.new(TAKEN, size, name)
                    else:
                        entry = self.ledger.new(place, size, name, group=group, stream=link.name, routing_key=wanted)
                    steps.append(self.ledger.begin(entry, ACTIVE))
                payloads.append(amqp.message(name, body_of(name, size), subject=subject))
            batch = count > 1
            future = link.post(amqp.batch(payloads) if batch else payloads[0], amqp.BATCH_FORMAT if batch else 0)
            world.follow(future, amqp.check_outcome, *steps, group=group)
            if world.random.random() < 0.5:
                await asyncio.wait([future])
            await asyncio.sleep(world.random.random() * 0.02)

    # At the end.

    async def cancel_all(self, connection):
        """What waits for a far time is there if and only if it can be cancelled."""
        management = Management(connection, NEWS)
        for number, message in self.far:
            steps = [self.ledger.begin(entry, GONE) for entry in message.entries]
            try:
                await management.request("cancel-scheduled-message", ("sequence-numbers", array("long", long_(number))))
            except Refused as e:
                self.ledger.violation(NEWS, f"{message.key}, scheduled as {number}, cannot be cancelled: {e}")
            for step in steps:
                self.ledger.done(step)
        self.far.clear()
