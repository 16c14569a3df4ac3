"""Partitioned entities made, changed and removed while the broker is killed: each is whole, or wholly gone.

What the broker says of an entity is compared with what was answered, what each partition does with what the broker says
(a message with a key of every partition), and what each store keeps of its partitions with what all others do.
"""

import asyncio
import json
import random
import struct
import threading
import time

import http.client

from wire.values import decode

from .broker import Broker
from .namespaces import Http

QUEUES = [f"wide{i}" for i in range(3)]
TOPICS = [f"spread{i}" for i in range(2)]
RULES = ["r1", "r2", "r3"]
PARTITIONS = 16
STORES = 4
DECIDED_SECONDS = 5  # a store that misses the decision about rules asks again after one
CUT_SHORT = "was cut short"
XSI = 'xmlns:i="http://www.w3.org/2001/XMLSchema-instance"'


def entry(description):
    return (f'<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">{description}</content>'
            "</entry>")


def described(kind, value):
    flag = "" if kind == "Subscription" else "<EnablePartitioning>true</EnablePartitioning>"
    return entry(f"<{kind}Description {XSI}>{flag}<UserMetadata>v{value}</UserMetadata></{kind}Description>")


def rule(value):
    return entry(f'<RuleDescription {XSI}><Filter i:type="SqlFilter"><SqlExpression>n = {value}</SqlExpression></Filter>'
                 "</RuleDescription>")


def between(text, before, after):
    return text.split(before, 1)[1].split(after, 1)[0] if before in text else None


def metadata(text):
    found = between(text, "<UserMetadata>v", "<")
    return None if found is None else int(found)


class Unexpected(RuntimeError):
    """An answer that nothing can go on with."""


class Client(Http):
    def change(self, method, path, body=None, update=False):
        """A rule whose last change was cut short is busy until all stores have heard which way that went."""
        until = time.monotonic() + DECIDED_SECONDS
        while True:
            status = self.ask(method, path, body=body, headers={"If-Match": "*"} if update else {})[0]
            if status != 503 or "/Rules/" not in path or time.monotonic() > until:
                return status
            time.sleep(0.05)

    def read(self, path):
        return self.ask("GET", path)[1]

    def send(self, path, key, number):
        return self.ask("POST", f"/{path}/messages", body="x", headers={
            "BrokerProperties": json.dumps({"PartitionKey": key}), "n": str(number)})[0]

    def purge(self, path):
        status, text = self.ask("POST", f"/$omnibus/purge/{path}")
        if status != 200:
            raise Unexpected(f"purge of {path}: status {status}, {text[:200]}")
        return json.loads(text)["purged"]


class Thing:
    """One entity or rule: the values it may have, None when it may be gone. Its value says which making or change of
    it is meant."""

    def __init__(self):
        self.may_be = {None}

    def is_there(self):
        return self.may_be != {None}

    def asked(self, value):
        self.may_be = self.may_be | {value}

    def is_now(self, value):
        self.may_be = {value}


class World:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.queues = {name: Thing() for name in QUEUES}
        self.topics = {name: Thing() for name in TOPICS}
        self.subscriptions = {name: Thing() for name in TOPICS}
        self.rules = {name: {one: Thing() for one in RULES} for name in TOPICS}
        self.keys = []  # one of each partition
        self.lock = threading.Lock()
        self.last = 0
        self.answers = 0
        self.troubles = []

    def trouble(self, what):
        self.troubles.append(what)

    def value(self):
        with self.lock:
            self.last += 1
            return self.last

    def find_keys(self, port):
        client = Client(port)
        client.change("PUT", "/probe", described("Queue", 0))
        found = {}
        for i in range(2000):
            if len(found) == PARTITIONS:
                break
            client.send("probe", f"key {i}", 0)
            client.ask("DELETE", "/probe/messages/head?timeout=5")
            if "BrokerProperties" not in client.answer_headers:
                raise Unexpected(f"a message with 'key {i}' did not come")
            number = json.loads(client.answer_headers["BrokerProperties"])["SequenceNumber"]
            found.setdefault(number >> 48, f"key {i}")
        client.change("DELETE", "/probe")
        self.keys = list(found.values())
        if len(self.keys) != PARTITIONS:
            self.trouble(f"keys for {len(self.keys)} partitions only")

    # Changing, until the broker is gone

    def live(self, port, name, seed):
        try:
            client, choice = Client(port), random.Random(seed)
            while not self.troubles:
                if name in self.queues:
                    self.step_of_queue(client, choice, name)
                else:
                    self.step_of_topic(client, choice, name)
        except (OSError, http.client.HTTPException):
            pass  # the broker was killed
        except Exception as e:  # a thread has nobody else to tell
            self.trouble(f"{type(e).__name__}: {e}")

    def change(self, client, thing, value, method, path, body=None, update=False):
        """False: something else than was to be expected was answered."""
        thing.asked(value)
        status = client.change(method, path, body, update)
        with self.lock:
            self.answers += 1
        wanted = 201 if method == "PUT" and not update else 200
        if status != wanted:
            self.trouble(f"{method} {path}: status {status}, not {wanted}")
            return False
        thing.is_now(value)
        return True

    def step_of_queue(self, client, choice, name):
        queue, value = self.queues[name], self.value()
        if not queue.is_there():
            if self.change(client, queue, value, "PUT", f"/{name}", described("Queue", value)):
                left = client.purge(name)
                if left:
                    self.trouble(f"{name} was made anew and has {left} old messages")
        elif choice.random() < 0.4:
            self.change(client, queue, value, "PUT", f"/{name}", described("Queue", value), update=True)
        elif choice.random() < 0.5:
            for key in choice.sample(self.keys, 3):
                if client.send(name, key, 0) != 201:
                    self.trouble(f"{name} takes no message with {key!r}")
        else:
            self.change(client, queue, None, "DELETE", f"/{name}")

    def step_of_topic(self, client, choice, name):
        topic, subscription, value = self.topics[name], self.subscriptions[name], self.value()
        path = f"/{name}/Subscriptions/s"
        if not topic.is_there():
            self.change(client, topic, value, "PUT", f"/{name}", described("Topic", value))
        elif not subscription.is_there():
            for one in self.rules[name].values():
                one.is_now(None)
            if self.change(client, subscription, value, "PUT", path, described("Subscription", value)):
                if client.purge(f"{name}/Subscriptions/s"):
                    self.trouble(f"{path} is new and has messages")
        elif choice.random() < 0.1:
            subscription.asked(None)
            if self.change(client, topic, None, "DELETE", f"/{name}"):
                subscription.is_now(None)
        elif choice.random() < 0.1:
            self.change(client, subscription, None, "DELETE", path)
        elif choice.random() < 0.2:
            self.change(client, topic, value, "PUT", f"/{name}", described("Topic", value), update=True)
        elif choice.random() < 0.2:
            self.change(client, subscription, value, "PUT", path, described("Subscription", value), update=True)
        else:
            which = choice.choice(RULES)
            one = self.rules[name][which]
            if not one.is_there():
                self.change(client, one, value, "PUT", f"{path}/Rules/{which}", rule(value))
            elif choice.random() < 0.5:
                self.change(client, one, value, "PUT", f"{path}/Rules/{which}", rule(value), update=True)
            else:
                self.change(client, one, None, "DELETE", f"{path}/Rules/{which}")

    # Looking, after the next start

    def settle(self, thing, found, what):
        if found not in thing.may_be:
            self.trouble(f"{what} is {found}, and can only be one of {sorted(thing.may_be, key=str)}")
        before = set(thing.may_be)
        thing.is_now(found)
        return before

    def look(self, port):
        client = Client(port)
        for name, queue in self.queues.items():
            self.settle(queue, metadata(client.read(f"/{name}")), name)
            if queue.is_there():
                self.reach_all(client, name, 0)
        for name, topic in self.topics.items():
            self.settle(topic, metadata(client.read(f"/{name}")), name)
            subscription = self.subscriptions[name]
            self.settle(subscription, metadata(client.read(f"/{name}/Subscriptions/s")), f"{name}/Subscriptions/s")
            if subscription.is_there():
                self.look_at_rules(client, name)
            elif topic.is_there():
                self.reach_all(client, name, 0)

    def reach_all(self, client, name, number):
        for key in self.keys:
            status = client.send(name, key, number)
            if status != 201:
                self.trouble(f"{name} takes no message with {key!r}: status {status}")

    def look_at_rules(self, client, name):
        path = f"{name}/Subscriptions/s"
        # `$Default` lets everything pass: without it, rules are seen by what passes.
        if client.ask("GET", f"/{path}/Rules/$Default")[0] == 200:
            if client.change("DELETE", f"/{path}/Rules/$Default") != 200:
                self.trouble(f"{path} keeps its $Default")
        client.purge(path)
        for which, one in self.rules[name].items():
            text = between(client.read(f"/{path}/Rules/{which}"), "<SqlExpression>n = ", "<")
            found = None if text is None else int(text)
            for value in self.settle(one, found, f"{path}/Rules/{which}") | {found}:
                if value is None:
                    continue
                wanted, until = PARTITIONS if value == found else 0, time.monotonic() + DECIDED_SECONDS
                while True:
                    self.reach_all(client, name, value)
                    passed = client.purge(path)
                    if passed == wanted or time.monotonic() > until:
                        break
                    time.sleep(0.05)
                if passed != wanted:
                    self.trouble(f"{path}/Rules/{which} is n = {found}, and {passed} of {PARTITIONS} partitions let n = "
                                 f"{value} pass")

    def look_at_stores(self, data):
        """What each store keeps, after a clean stop."""
        parts = {}
        for number in range(STORES):
            for one in listed(data / f"store-{number}.entities"):
                parts.setdefault(one["name"], []).append(one)
        wanted = {name for name, one in {**self.queues, **self.topics}.items() if one.is_there()}
        wanted |= {f"{name}/Subscriptions/s" for name, one in self.subscriptions.items() if one.is_there()}
        if set(parts) != wanted:
            self.trouble(f"stores have {sorted(parts)}, and there should be {sorted(wanted)}")
        for name, several in parts.items():
            if sorted(one.pop("partition", 0) for one in several) != list(range(PARTITIONS)):
                self.trouble(f"{name} has {len(several)} partitions")
            for one in several:
                one.pop("created"), one.pop("topic", None)
                if one != several[0]:
                    self.trouble(f"{name} is not the same in all partitions: {one} and {several[0]}")
                if "state" in one:
                    self.trouble(f"{name} has a partition that is {one['state']}")

    def take_troubles(self):
        troubles, self.troubles = self.troubles, []
        return troubles


def listed(path):
    """The partitions in a store's list: docs/formats/stores.md."""
    bytes_ = path.read_bytes()
    count, at = struct.unpack_from("<I", bytes_, 16)[0], 20
    for _ in range(count):
        _, size = struct.unpack_from("<II", bytes_, at)
        fields = decode(bytes_[at + 8:at + 8 + size]).value
        yield {key.value: value.value for key, value in fields}
        at += 8 + size


async def kills(arguments, verdicts, folder):
    world = World(arguments.seed)
    broker = Broker(arguments.binary, folder, {}, settings={"Shards": STORES})
    try:
        await broker.start()
        world.find_keys(broker.port)
        for number in range(1, arguments.kills + 1):
            seeds = [(name, world.random.random()) for name in (*QUEUES, *TOPICS)]
            workers = [threading.Thread(target=world.live, args=(broker.port, *one)) for one in seeds]
            for worker in workers:
                worker.start()
            await asyncio.sleep(0.05 + world.random.random() * min(arguments.seconds_each, 0.4))
            broker.kill()
            for worker in workers:
                worker.join()
            if number % 3 == 0:
                await broker.cut_start_short(world.random.random() * 0.15)
            verdicts.say(f"partitioned changes, kill {number}", world.take_troubles(), f"{world.answers} answers")
            if verdicts.failed:
                return
            await broker.start()
            world.look(broker.port)
            await broker.stop()
            world.look_at_stores(broker.data)
            verdicts.say(f"partitioned entities after kill {number}", world.take_troubles())
            if verdicts.failed:
                return
            await broker.start()
        await broker.stop()
        mended = broker.log().count(CUT_SHORT)
        idle = [f"no change was cut short by {arguments.kills} kills"] if arguments.kills >= 50 and not mended else []
        verdicts.say("partitioned changes", idle, f"{world.answers} answers, {mended} were cut short and mended")
    finally:
        broker.kill()
