"""A small AMQP client on asyncio, for speed and control: it says what it wrote and what was answered.

One connection has one session. Everything it awaits ends with Lost when the broker dies, so a caller
knows that an answer is missing, which is all that matters here. It uses the codec of tests/interop/wire.
"""

import asyncio
import itertools
import struct

from wire.frames import Header, frame, header, parse_frame
from wire.values import (NULL, binary, boolean, decode_all, described, encode, list_, long_, map_, string, symbol,
                         timestamp, ubyte, uint, ulong, ushort)

RULE, KEY = "RootManageSharedAccessKey", "SAS_KEY_VALUE"
BATCH_FORMAT = 0x80013700
WINDOW = 2**31 - 1
FRAGMENT_BYTES = 60000
ACCEPTED, REJECTED, RELEASED, MODIFIED = 0x24, 0x25, 0x26, 0x27
TRANSACTIONAL = 0x34

COMPLETE = described(ulong(ACCEPTED), list_())
RELEASE = described(ulong(RELEASED), list_())
ABANDON = described(ulong(MODIFIED), list_(boolean(True), boolean(False)))
DEFER = described(ulong(MODIFIED), list_(boolean(False), boolean(True)))


def dead_letter(reason, description):
    info = map_((symbol("DeadLetterReason"), string(reason)),
                (symbol("DeadLetterErrorDescription"), string(description)))
    error = described(ulong(0x1D), list_(symbol("com.microsoft:dead-letter"), NULL, info))
    return described(ulong(REJECTED), list_(error))


class Lost(Exception):
    """The connection ended before the answer came."""


class Refused(Exception):
    """The broker refused or ended the link, or rejected the delivery."""

    def __init__(self, condition, description=""):
        super().__init__(f"{condition}: {description}")
        self.condition = condition


def lost_future():
    """A future that is Lost already, and does not mind when nobody looks."""
    future = asyncio.get_running_loop().create_future()
    future.set_exception(Lost())
    future.exception()
    return future


def error_of(value):
    """(condition, description) of an error field, or None."""
    if value is None or value.kind != "described":
        return None
    fields = value.value[1].value
    return fields[0].value, fields[1].value if len(fields) > 1 else ""


class Connection:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.links = {}  # by name, while attaching and after
        self.by_handle = {}  # by the broker's handle
        self.sent, self.settling = {}, {}  # futures by delivery id
        self.handles, self.delivery_ids = itertools.count(), itertools.count()
        self.next_incoming = 0
        self.next_outgoing = 0
        self.remote_window = 0
        self.changed = asyncio.Event()  # credit or window came
        self.lost = asyncio.get_running_loop().create_future()
        self.lost.add_done_callback(lambda f: f.exception())  # seen, so that nobody complains
        self.task = None

    @classmethod
    async def open(cls, port, seconds=10):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError as e:
            raise Lost from e
        self = cls(reader, writer)
        password = b"\0" + RULE.encode() + b"\0" + KEY.encode()
        writer.write(header(3) + frame(0, "init", symbol("PLAIN"), binary(password), string("localhost"), sasl=True)
                     + header(0) + frame(0, "open", string("crash"), string("localhost"), uint(1048576), ushort(100))
                     + frame(0, "begin", NULL, uint(0), uint(WINDOW), uint(WINDOW), uint(100000)))
        try:
            await asyncio.wait_for(self._handshake(), seconds)
        except (OSError, EOFError, asyncio.TimeoutError) as e:
            writer.transport.abort()
            raise Lost from e
        self.task = asyncio.create_task(self._read())
        return self

    async def _item(self):
        head = await self.reader.readexactly(8)
        if head[:4] == b"AMQP":
            return Header(head)
        return parse_frame(head + await self.reader.readexactly(struct.unpack(">I", head[:4])[0] - 8))

    async def _handshake(self):
        while True:
            item = await self._item()
            if isinstance(item, Header):
                continue
            if item.name == "outcome" and item.field(0).value != 0:
                raise Refused("sasl", f"code {item.field(0).value}")
            if item.name == "begin":
                self.next_incoming = item.field(1).value
                self.remote_window = item.field(2).value
                return

    def close(self):
        if self.task:
            self.task.cancel()
        self._end()
        self.writer.transport.abort()

    def _end(self):
        if not self.lost.done():
            self.lost.set_exception(Lost())
        for future in [*self.sent.values(), *self.settling.values()]:
            if not future.done():
                future.set_exception(Lost())
                future.exception()
        for link in self.links.values():
            link.end(Lost())
        self.changed.set()

    async def _read(self):
        try:
            while True:
                self._handle(await self._item())
        except (OSError, EOFError):
            pass
        finally:
            self._end()

    def _handle(self, item):
        name = item.name
        if name == "transfer":
            self.next_incoming += 1
            self.by_handle[item.field(0).value].transfer(item)
        elif name == "disposition":
            self._disposition(item)
        elif name == "flow":
            self._flow(item)
        elif name == "attach":
            link = self.links[item.field(0).value]
            self.by_handle[item.field(1).value] = link
            link.attach_came(item)
        elif name == "detach":
            link = self.by_handle.pop(item.field(0).value)
            link.end(Refused(*(error_of(item.field(2)) or ("detached", ""))))
            if not link.detaching:
                link.detach()
        elif name in ("end", "close"):
            raise EOFError(str(error_of(item.field(0))))

    def _flow(self, item):
        base = item.field(0).value or 0
        self.remote_window = (base + item.field(1).value - self.next_outgoing) & 0xFFFFFFFF
        if item.field(4) != NULL:
            link = self.by_handle.get(item.field(4).value)
            if link and not link.receiver:
                link.credit = (item.field(5).value or 0) + (item.field(6).value or 0) - link.count
        self.changed.set()

    def _disposition(self, item):
        first = item.field(1).value
        last = item.field(2).value if item.field(2) != NULL else first
        waiting = self.sent if item.field(0).value else self.settling
        for number in range(first, last + 1):
            future = waiting.pop(number, None)
            if future and not future.done():
                future.set_result(item.field(4))

    async def wait(self, ready):
        """Until `ready()` is true; new credit and windows are when to look again."""
        while not ready():
            if self.lost.done():
                raise Lost
            self.changed.clear()
            await self.changed.wait()


class Link:
    numbers = itertools.count()

    def __init__(self, connection, receiver):
        self.connection, self.receiver = connection, receiver
        self.name = f"link-{next(Link.numbers)}"
        self.handle = next(connection.handles)
        self.attached = asyncio.get_running_loop().create_future()
        self.credit = 0  # a sender's: what the broker allows; a receiver's: what is left of what we gave
        self.count = 0
        self.ended = None
        self.detaching = False
        connection.links[self.name] = self

    def _write_attach(self, source, target, modes):
        self.connection.writer.write(frame(
            0, "attach", string(self.name), uint(self.handle), boolean(self.receiver), ubyte(modes[0]), ubyte(modes[1]),
            source, target, NULL, NULL, NULL if self.receiver else uint(0)))

    def attach_came(self, item):
        if item.field(5 if self.receiver else 6) != NULL and not self.attached.done():
            self.attached.set_result(self)  # otherwise a detach follows

    def end(self, why):
        self.ended = self.ended or why
        if not self.attached.done():
            self.attached.set_exception(why)
            self.attached.exception()

    def detach(self):
        self.detaching = True
        self.connection.writer.write(frame(0, "detach", uint(self.handle), boolean(True)))


def _source(address, filter_=NULL):
    fields = [string(address)] + [NULL] * 6 + [filter_]
    return described(ulong(0x28), list_(*fields))


def _target(address):
    return described(ulong(0x29), list_(string(address)))


class Sender(Link):
    def __init__(self, connection, address, target=None):
        super().__init__(connection, False)
        self._write_attach(_source("crash"), target or _target(address), (2, 0))

    async def ready(self):
        """Until one more message may be posted."""
        await self.attached
        await self.connection.wait(
            lambda: self.ended or (self.credit > 0 and self.connection.remote_window > 64))
        if self.ended:
            raise self.ended

    def post(self, payload, message_format=0, state=NULL):
        """Writes a message now; the future is the outcome."""
        connection = self.connection
        if connection.lost.done():
            return lost_future()
        number = next(connection.delivery_ids)
        future = asyncio.get_running_loop().create_future()
        connection.sent[number] = future
        for start in range(0, len(payload), FRAGMENT_BYTES):
            more = start + FRAGMENT_BYTES < len(payload)
            connection.writer.write(frame(
                0, "transfer", uint(self.handle), uint(number), binary(struct.pack(">I", number)), uint(message_format),
                boolean(False), boolean(more), NULL, state, payload=payload[start:start + FRAGMENT_BYTES]))
            connection.next_outgoing += 1
            connection.remote_window -= 1
        self.count += 1
        self.credit -= 1
        return future


def check_outcome(state):
    """Raises Refused unless the outcome is accepted."""
    if state.kind == "described" and state.value[0].value == ACCEPTED:
        return
    fields = state.value[1].value if state.kind == "described" else []
    raise Refused(*(error_of(fields[0]) if fields else None) or ("not accepted", str(state)))


class Controller(Sender):
    """Declares and discharges transactions."""

    def __init__(self, connection):
        super().__init__(connection, None, described(ulong(0x30), list_()))

    async def declare(self):
        """The id of a new transaction."""
        await self.ready()
        state = await self.post(encode(described(ulong(0x77), described(ulong(0x31), list_()))))
        if state.value[0].value != 0x33:
            check_outcome(state)
        return state.value[1].value[0].value

    def discharge(self, transaction, fail):
        """The future is the outcome."""
        body = described(ulong(0x32), list_(binary(transaction), boolean(fail)))
        return self.post(encode(described(ulong(0x77), body)))


def in_transaction(transaction, *outcome):
    return described(ulong(TRANSACTIONAL), list_(binary(transaction), *outcome))


def check_enlisted(answer, transaction):
    """Raises Refused unless a send or a settlement became part of the transaction."""
    if answer.value[0].value == TRANSACTIONAL:
        if answer.value[1].value[0].value != transaction:
            raise Refused("another transaction", str(answer))
        return
    check_outcome(answer)
    raise Refused("accepted outside of the transaction", str(answer))


class Delivery:
    def __init__(self, link, number, tag, settled, payload):
        self.link, self.number, self.tag, self.settled, self.payload = link, number, tag, settled, payload


class Receiver(Link):
    def __init__(self, connection, address, *, delete=False, session=None, on_delivery=None, target="crash"):
        super().__init__(connection, True)
        self.deliveries = asyncio.Queue()
        self.on_delivery = on_delivery or self.deliveries.put_nowait
        self.partial = None
        filter_ = NULL
        if session is not None:
            filter_ = map_((symbol("com.microsoft:session-filter"), string(session)))
        self._write_attach(_source(address, filter_), _target(target), (1, 0) if delete else (0, 1))

    def give(self, credit):
        """Sets the credit."""
        self.credit = credit
        connection = self.connection
        connection.writer.write(frame(
            0, "flow", uint(connection.next_incoming), uint(WINDOW), uint(connection.next_outgoing), uint(WINDOW),
            uint(self.handle), uint(self.count), uint(credit), NULL, boolean(False), boolean(False)))

    def transfer(self, item):
        if self.partial is None:
            self.partial = (item.field(1).value, item.field(2).value, bool(item.field(4).value), [])
        self.partial[3].append(item.payload)
        if item.field(5).value:
            return
        number, tag, settled, pieces = self.partial
        self.partial = None
        self.count += 1
        self.credit -= 1
        self.on_delivery(Delivery(self, number, tag, settled, b"".join(pieces)))

    async def next(self, seconds):
        """A delivery, or None after the time."""
        if self.deliveries.empty():
            get = asyncio.ensure_future(self.deliveries.get())
            done, _ = await asyncio.wait({get, self.connection.lost}, timeout=seconds,
                                         return_when=asyncio.FIRST_COMPLETED)
            if get in done:
                return get.result()
            get.cancel()
            if self.connection.lost.done():
                raise Lost
            if self.ended:
                raise self.ended
            return None
        return self.deliveries.get_nowait()

    def settle(self, delivery, state, settled=False):
        """Writes a disposition; the future is the broker's answer (none comes when it is settled)."""
        connection = self.connection
        if connection.lost.done():
            return lost_future()
        future = asyncio.get_running_loop().create_future()
        connection.writer.write(frame(0, "disposition", boolean(True), uint(delivery.number), NULL, boolean(settled),
                                      state))
        if settled:
            future.set_result(NULL)
        else:
            connection.settling[delivery.number] = future
        return future


def check_settled(answer, wanted):
    """Raises Refused unless the broker's answer is the outcome that was asked for, without an error."""
    kind = answer.value[0].value if answer.kind == "described" else None
    fields = answer.value[1].value if answer.kind == "described" else []
    error = error_of(fields[0]) if kind == REJECTED and fields else None
    if error:
        raise Refused(*error)
    if kind != wanted.value[0].value:
        raise Refused("another outcome", str(answer))


class Management:
    """Requests to `<entity>/$management`."""

    def __init__(self, connection, entity):
        address = f"{entity}/$management"
        self.reply_to = f"reply-{next(Link.numbers)}"
        self.waiting, self.numbers = {}, itertools.count(1)
        self.connection = connection
        self.replies = Receiver(connection, address, delete=True, on_delivery=self._reply, target=self.reply_to)
        self.replies.give(100)
        self.requests = Sender(connection, address)
        connection.lost.add_done_callback(lambda _: self._end())

    def _end(self):
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(Lost())
                future.exception()

    def _reply(self, delivery):
        sections = {s.value[0].value: s.value[1] for s in decode_all(delivery.payload)}
        future = self.waiting.pop(sections[0x73].value[5].value, None)
        if self.replies.credit < 50:
            self.replies.give(100)
        if future and not future.done():
            answer = {k.value: v.value for k, v in sections[0x74].value}
            body = sections[0x77]
            future.set_result((answer, {k.value: v for k, v in body.value} if body.kind == "map" else {}))

    async def ready(self):
        await self.requests.ready()

    def post(self, operation, *body):
        """Writes a request now; the future is (application properties, body)."""
        if self.connection.lost.done():
            return lost_future()
        future = asyncio.get_running_loop().create_future()
        number = f"request-{next(self.numbers)}"
        self.waiting[number] = future
        payload = b"".join(map(encode, (
            described(ulong(0x73), list_(string(number), NULL, NULL, NULL, string(self.reply_to))),
            described(ulong(0x74), map_((string("operation"), string(f"com.microsoft:{operation}")))),
            described(ulong(0x77), map_(*((string(k), v) for k, v in body))))))
        self.requests.post(payload)
        return future

    async def request(self, operation, *body):
        """The body of a 2xx answer; Refused otherwise."""
        await self.ready()
        answer, result = await self.post(operation, *body)
        return self.checked(answer, result)

    @staticmethod
    def checked(answer, result):
        if answer["statusCode"] >= 300:
            raise Refused(answer.get("errorCondition", "no condition"),
                          f"{answer['statusCode']} {answer.get('statusDescription')}")
        return result


# Messages.

def message(key, body, session=None, due=None, subject=None, properties=None, partition_key=None):
    """`properties` are texts and whole numbers."""
    sections = [described(ulong(0x70), list_(boolean(True)))]
    annotations = []
    if due is not None:
        annotations.append((symbol("x-opt-scheduled-enqueue-time"), timestamp(int(due * 1000))))
    if partition_key is not None:
        annotations.append((symbol("x-opt-partition-key"), string(partition_key)))
    if annotations:
        sections.append(described(ulong(0x72), map_(*annotations)))
    fields = [string(key)] + [NULL] * 10
    if subject is not None:
        fields[3] = string(subject)
    if session is not None:
        fields[10] = string(session)
    sections.append(described(ulong(0x73), list_(*fields)))
    if properties:
        sections.append(described(ulong(0x74), map_(*(
            (string(k), string(v) if isinstance(v, str) else long_(v)) for k, v in properties.items()))))
    sections.append(described(ulong(0x75), binary(body)))
    return b"".join(map(encode, sections))


def batch(messages):
    return b"".join(encode(described(ulong(0x75), binary(m))) for m in messages)


class Received:
    """What the checks need of an encoded message."""

    def __init__(self, payload):
        sections = {}
        for section in decode_all(payload):
            sections.setdefault(section.value[0].value, section.value[1])
        annotations = {k.value: v.value for k, v in sections[0x72].value}
        properties = sections[0x73].value
        self.key = properties[0].value if properties else None
        self.session = properties[10].value if len(properties) > 10 else None
        self.number = annotations["x-opt-sequence-number"]
        self.state = annotations.get("x-opt-message-state", 0)
        header_ = sections[0x70].value
        self.count = header_[4].value
        self.body = sections[0x75].value if 0x75 in sections else None
        application = {k.value: v.value for k, v in sections[0x74].value} if 0x74 in sections else {}
        self.reason = application.pop("DeadLetterReason", None)
        self.description = application.pop("DeadLetterErrorDescription", None)
        self.rule = application.pop("RuleName", None)  # whose action made this copy
        self.properties = application
        self.routing_key = annotations.get("x-routing-key")
        self.locked_until = annotations.get("x-opt-locked-until")  # milliseconds
