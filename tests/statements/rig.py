"""A broker with four stores that can be taken down, and what the rows do with it again and again."""

import asyncio
import contextlib
import datetime
import http.client
import itertools
import time
import urllib.error
import urllib.request
import weakref

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue
from azure.servicebus._base_handler import ServiceBusSharedKeyCredential
from azure.servicebus.management import ServiceBusAdministrationClient

from crash.broker import Broker
from report import context
from table import check, same

STORES = 4
PARTITIONS = 16
UTC = datetime.timezone.utc
DELETE = {"receive_mode": ServiceBusReceiveMode.RECEIVE_AND_DELETE}
DEAD = {"sub_queue": ServiceBusSubQueue.DEAD_LETTER}

PARTITIONED = {"EnablePartitioning": True}
# Rows that only read or leave nothing behind share an entity; `fresh` makes one that nobody else uses.
SHAPES = {
    "plain": {},
    "spread": PARTITIONED,
    "spread-dedup": {**PARTITIONED, "RequiresDuplicateDetection": True},
    "spread-sessions": {**PARTITIONED, "RequiresSession": True},
    "plain-sessions": {"RequiresSession": True},
    "target": PARTITIONED,
    "from-spread": {**PARTITIONED, "ForwardTo": "target"},
    "from-plain": {"ForwardTo": "target"},
    "plain-target": {},
    "to-plain": {**PARTITIONED, "ForwardTo": "plain-target"},
}


def settings():
    return ({
        "Queues": [{"Name": name, "Properties": properties} for name, properties in SHAPES.items()],
        "Topics": [{"Name": "news", "Properties": PARTITIONED, "Subscriptions": [
            {"Name": "all", "Properties": {}},
            {"Name": "sent-on", "Properties": {"ForwardTo": "plain-target"}}]}],
    }, {"Stores": STORES, "StoreSwitch": True, "Shards": 2})


class Rig:
    def __init__(self, binary, folder):
        entities, omnibus = settings()
        self.broker = Broker(binary, folder, entities, settings=omnibus)
        self.names = itertools.count(1)

    def start(self):
        asyncio.run(self.broker.start())
        context["brokers"]["queues"] = {"port": self.broker.port}

    def stop(self):
        asyncio.run(self.broker.stop())

    def connection_string(self):
        return (f"Endpoint=sb://localhost:{self.broker.port};SharedAccessKeyName=RootManageSharedAccessKey;"
                "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;")

    def client(self, retries=0):
        return ServiceBusClient.from_connection_string(self.connection_string(), retry_total=retries, socket_timeout=20)

    def admin(self):
        return ServiceBusAdministrationClient.from_connection_string(
            self.connection_string(), connection_verify=str(self.broker.data / "tls" / "ca.pem"))

    @contextlib.contextmanager
    def raw_admin(self, version):
        """A function that reads an entity over one connection, as this version of the API has it."""
        token = ServiceBusSharedKeyCredential("RootManageSharedAccessKey", "SAS_KEY_VALUE").get_token(
            f"http://localhost:{self.broker.port}").token
        connection = http.client.HTTPConnection("127.0.0.1", self.broker.port, timeout=10)

        def get(path):
            before = connection.sock
            connection.request("GET", f"{path}?api-version={version}", headers={"Authorization": token})
            answer = connection.getresponse()
            body = answer.read().decode()
            same(answer.status, 200, f"status of {path}: {body[:200]}")
            check(before is None or connection.sock is before, "the connection was not kept")
            return body
        try:
            yield get
        finally:
            connection.close()

    def fresh(self, **properties):
        """The name of a new partitioned queue."""
        name = f"fresh-{next(self.names)}"
        with self.admin() as admin:
            admin.create_queue(name, **{"enable_partitioning": True, **properties})
        return name

    # --- stores

    def _switch(self, store, way):
        url = f"http://127.0.0.1:{self.broker.port}/$stores/{store}/{way}"
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10) as answer:
            same(answer.status, 202, f"switching store {store} {way}")

    @contextlib.contextmanager
    def without(self, store):
        """While inside, this store is away."""
        self._switch(store, "down")
        self._wait(lambda: not self.healthy(), f"store {store} is down")
        try:
            yield
        finally:
            self._switch(store, "up")
            self._wait(self.healthy, f"store {store} is back")

    def healthy(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.broker.port}/health", timeout=10) as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False

    @staticmethod
    def _wait(holds, what, seconds=10):
        deadline = time.monotonic() + seconds
        while not holds():
            check(time.monotonic() < deadline, f"not within {seconds} s: {what}")
            time.sleep(0.02)

    def store_bytes(self):
        """What each store has on the disk in use; reserved space counts from its first byte."""
        return [sum(p.stat().st_size for p in (self.broker.data / f"store-{n}").glob("*.segment"))
                for n in range(STORES)]


def store_of(name, partition):
    """Which store has a partition: the first by FNV-1a of the name, the others follow."""
    value = 0xcbf29ce484222325
    for byte in name.lower().encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return (value % STORES + partition) % STORES


def numbered(count, prefix=""):
    return [f"{prefix}{n}" for n in range(count)]


def soon(seconds):
    return datetime.datetime.now(UTC) + datetime.timedelta(seconds=seconds)


def text(message):
    return b"".join(message.body).decode()


def partition_of(message):
    return message.sequence_number >> 48


_senders = weakref.WeakKeyDictionary()


def send(client, queue, *messages):
    """By a sender that stays open with its client: the library takes a second to close one."""
    senders = _senders.setdefault(client, {})
    if queue not in senders:
        senders[queue] = client.get_queue_sender(queue)
    for message in messages:
        senders[queue].send_messages(ServiceBusMessage(message) if isinstance(message, str) else message)


def take(receiver, count, seconds=15):
    got, deadline = [], time.monotonic() + seconds
    while len(got) < count:
        left = deadline - time.monotonic()
        check(left > 0, f"{len(got)} of {count} messages came within {seconds} s")
        got += receiver.receive_messages(max_message_count=count - len(got), max_wait_time=left)
    return got


def drain(client, queue, count, **options):
    """Exactly this many messages, which are then gone, and no more."""
    with client.get_queue_receiver(queue, **DELETE, **options) as receiver:
        got = take(receiver, count)
        same([text(m) for m in receiver.receive_messages(max_wait_time=0.3)], [], "more than expected")
    return got


def peeked(receiver, at_once=50):
    """Everything there is, as clients go through it: on from the last number until nothing comes."""
    seen, following = [], 1
    while page := receiver.peek_messages(at_once, sequence_number=following):
        seen += page
        following = page[-1].sequence_number + 1
    return seen


def key_in(name, store, wanted=None):
    """A key whose messages of the entity lie in this store. `wanted` maps keys to partitions once seen."""
    for key, partition in (wanted or {}).items():
        if store_of(name, partition) == store:
            return key
    raise AssertionError(f"no key for store {store} among {wanted}")


def learn_keys(client, queue, count=24):
    """Where keys go: by sending one message with each and looking at its number."""
    keys = [f"k{n}" for n in range(count)]
    send(client, queue, *[ServiceBusMessage(key, partition_key=key) for key in keys])
    return {text(m): partition_of(m) for m in drain(client, queue, count)}
