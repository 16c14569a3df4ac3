#!/usr/bin/env python3
"""Writes golden bytes made by Qpid Proton: values, messages and captured frames, on stdout.

  make_proton.py values | messages | captured

A line is `name hex meaning`. In `values` and `messages` the meaning is written down here from the
input, never read back from the bytes. `captured` joins two Proton engines in memory (no sockets),
lets them talk, and prints each header and frame either side wrote; describe.py adds the meaning.
"""

import sys
import uuid

import proton
from proton import (Array, Condition, Connection, Data, Delivery, Described, Endpoint,
                    Link, Message, Terminus, Transport, byte, char, decimal32, decimal64, decimal128,
                    float32, int32, short, symbol, timestamp, ubyte, uint, ulong, ushort)

UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
UUID_TEXT = f"uuid:{UUID}"


def line(name, data, meaning=None):
    print(" ".join(filter(None, [name, bytes(data).hex(), meaning])))


def encoded(value):
    data = Data()
    data.put_object(value)
    return data.encode()


def values():
    def one(name, value, meaning):
        line(name, encoded(value), meaning)

    def many(kind, make, numbers):
        for n in numbers:
            one(f"{kind}_{n}".replace("-", "minus_"), make(n), f"{kind}:{n}")

    one("null", None, "null")
    one("true", True, "true")
    one("false", False, "false")
    many("ubyte", ubyte, [0, 255])
    many("ushort", ushort, [0, 256, 65535])
    many("uint", uint, [0, 1, 255, 256, 4294967295])
    many("ulong", ulong, [0, 1, 255, 256, 4294967296, 18446744073709551615])
    many("byte", byte, [0, 127, -128])
    many("short", short, [0, 32767, -32768])
    many("int", int32, [0, 127, 128, 2147483647, -1, -128, -129, -2147483648])
    many("long", int, [0, 127, 128, 9223372036854775807, -1, -128, -129, -9223372036854775808])
    one("float_one", float32(1.0), "float:0x3f800000")
    one("double_tenth", 0.1, "double:0x3fb999999999999a")
    one("decimal32", decimal32(0x22500001), "decimal32:0x22500001")
    one("decimal64", decimal64(0x2238000000000001), "decimal64:0x2238000000000001")
    one("decimal128", decimal128(bytes.fromhex("22080000000000000000000000000001")),
        "decimal128:0x22080000000000000000000000000001")
    one("char", char("ż"), "char:0x17c")
    one("timestamp", timestamp(1767225600123), "timestamp:1767225600123")
    one("timestamp_before_epoch", timestamp(-1), "timestamp:-1")
    one("uuid", UUID, UUID_TEXT)
    one("binary_empty", b"", "binary:")
    one("binary_255", b"\xab" * 255, "binary:" + "ab" * 255)
    one("binary_256", b"\xab" * 256, "binary:" + "ab" * 256)
    one("string_empty", "", 'string:""')
    one("string_utf8", "zażółć 😀 Жук", 'string:"zażółć 😀 Жук"')
    one("string_256_bytes", "ż" * 128, 'string:"' + "ż" * 128 + '"')
    one("symbol", symbol("amqp:accepted:list"), 'symbol:"amqp:accepted:list"')
    one("list_empty", [], "[]")
    one("list", [uint(0), None, "x"], '[uint:0, null, string:"x"]')
    one("list_300", [None] * 300, "[" + ", ".join(["null"] * 300) + "]")
    one("map_empty", {}, "{}")
    one("map", {symbol("a"): int32(1), "b": None}, '{symbol:"a": int:1, string:"b": null}')
    one("map_nested", {"m": {"l": [{ulong(0): byte(-1)}]}}, '{string:"m": {string:"l": [{ulong:0: byte:-1}]}}')
    one("array_symbol", Array(proton.UNDESCRIBED, Data.SYMBOL, symbol("PLAIN"), symbol("ANONYMOUS")),
        'array(symbol)[symbol:"PLAIN", symbol:"ANONYMOUS"]')
    one("array_long", Array(proton.UNDESCRIBED, Data.LONG, 1, -1), "array(long)[long:1, long:-1]")
    one("array_uuid", Array(proton.UNDESCRIBED, Data.UUID, UUID), f"array(uuid)[{UUID_TEXT}]")
    one("array_boolean", Array(proton.UNDESCRIBED, Data.BOOL, True, False), "array(boolean)[true, false]")
    one("array_described", Array(ulong(5), Data.UINT, uint(7), uint(8)), "array(@ulong:5 uint)[uint:7, uint:8]")
    one("described_ulong", Described(ulong(0x24), []), "@ulong:36 []")
    one("described_symbol", Described(symbol("com.microsoft:timespan"), 600000000),
        '@symbol:"com.microsoft:timespan" long:600000000')


def messages():
    def one(name, message, *sections):
        line(name, message.encode(), " / ".join(sections))

    # Proton always writes header and properties, as empty lists when nothing is in them.
    header, properties = "@ulong:112 []", "@ulong:115 []"

    one("body_string", Message(body="hello"), header, properties, "@ulong:119 string:\"hello\"")
    one("body_data", Message(body=b"\x00\xff", inferred=True), header, properties, "@ulong:117 binary:00ff")
    one("body_binary_value", Message(body=b"\x00\xff"), header, properties, "@ulong:119 binary:00ff")
    one("body_sequence", Message(body=[1, False], inferred=True), header, properties, "@ulong:118 [long:1, false]")
    one("header_durable", Message(durable=True, body="x"), "@ulong:112 [true]", properties, "@ulong:119 string:\"x\"")
    one("message_id_ulong", Message(id=7, body="x"), header, "@ulong:115 [ulong:7]", "@ulong:119 string:\"x\"")
    one("message_id_uuid", Message(id=UUID, body="x"), header, f"@ulong:115 [{UUID_TEXT}]", "@ulong:119 string:\"x\"")
    every = Message(
        durable=True, priority=9, ttl=60.0, first_acquirer=True, delivery_count=3,
        id="m-1", user_id=b"user", address="queue", subject="label", reply_to="replies",
        correlation_id="c-1", content_type="application/json", content_encoding="utf-8",
        expiry_time=253402243199.0, creation_time=1767225600.0, group_id="session-1", group_sequence=5,
        reply_to_group_id="session-2", inferred=True, body=b'{"a":1}',
        properties={"text": "t", "number": 300, "flag": True},
        annotations={symbol("x-opt-partition-key"): "p"},
        instructions={symbol("x-opt-lock-token"): UUID})
    one("every_section", every,
        "@ulong:112 [true, ubyte:9, uint:60000, true, uint:3]",
        f'@ulong:113 {{symbol:"x-opt-lock-token": {UUID_TEXT}}}',
        '@ulong:114 {symbol:"x-opt-partition-key": string:"p"}',
        '@ulong:115 [string:"m-1", binary:75736572, string:"queue", string:"label", string:"replies", '
        'string:"c-1", symbol:"application/json", symbol:"utf-8", timestamp:253402243199000, '
        'timestamp:1767225600000, string:"session-1", uint:5, string:"session-2"]',
        '@ulong:116 {string:"text": string:"t", string:"number": long:300, string:"flag": true}',
        "@ulong:117 binary:7b2261223a317d")


class Side:
    """One end of the captured conversation."""

    def __init__(self, prefix, mode):
        self.prefix, self.count, self.pending = prefix, 0, b""
        self.transport = Transport(mode)
        self.connection = Connection()
        self.connection.container = prefix

    def move_to(self, other):
        moved = False
        while True:
            size = self.transport.pending()
            if size <= 0:
                return moved
            data = self.transport.peek(size)
            self.transport.pop(len(data))
            self.record(data)
            other.transport.push(data)
            moved = True

    def record(self, data):
        self.pending += data
        while len(self.pending) >= 8:
            size = 8 if self.pending[:4] == b"AMQP" else int.from_bytes(self.pending[:4], "big")
            if len(self.pending) < size:
                return
            line(f"{self.prefix}_{self.count:02}", self.pending[:size])
            self.pending = self.pending[size:]
            self.count += 1


def captured():
    client, server = Side("client", Transport.CLIENT), Side("server", Transport.SERVER)
    client.transport.sasl().allow_insecure_mechs = True
    client.transport.sasl().allowed_mechs("ANONYMOUS")
    server.transport.sasl().allowed_mechs("ANONYMOUS")
    server.transport.require_auth(False)
    client.transport.idle_timeout = 30.0
    client.transport.max_frame_size = 512

    def talk():
        while client.move_to(server) | server.move_to(client):
            pass

    client.connection.hostname = "host.example"
    client.connection.desired_capabilities = Array(proton.UNDESCRIBED, Data.SYMBOL, symbol("ANONYMOUS-RELAY"))
    client.connection.properties = {symbol("product"): "golden"}
    client.transport.bind(client.connection)
    server.transport.bind(server.connection)
    client.connection.open()
    session = client.connection.session()
    session.open()
    sender = session.sender("sender")
    sender.target.address = "queue"
    sender.snd_settle_mode = Link.SND_MIXED
    sender.open()
    receiver = session.receiver("receiver")
    receiver.source.address = "queue/$DeadLetterQueue"
    receiver.source.durability = Terminus.DELIVERIES
    receiver.source.filter.put_dict({symbol("com.microsoft:session-filter"): "session-1"})
    receiver.snd_settle_mode = Link.SND_UNSETTLED
    receiver.rcv_settle_mode = Link.RCV_SECOND
    receiver.flow(10)
    receiver.open()
    talk()

    server.connection.open()
    peer = server.connection.session_head(Endpoint.REMOTE_ACTIVE)
    peer.open()
    links = {}
    link = server.connection.link_head(Endpoint.REMOTE_ACTIVE)
    while link:
        links[link.name] = link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.open()
        link = link.next(Endpoint.REMOTE_ACTIVE)
    links["sender"].flow(100)
    talk()

    # One small message, then one that does not fit the frame size of the other side.
    def send(link, tag, body):
        delivery = link.delivery(tag)
        link.send(Message(body=body, inferred=True).encode())
        link.advance()
        return delivery

    first = send(sender, "1", b"small")
    talk()
    arrived = links["sender"].current
    links["sender"].recv(1 << 20)
    arrived.update(Delivery.ACCEPTED)
    arrived.settle()
    talk()
    first.settle()
    back = send(links["receiver"], "t" * 16, b"x" * 900)
    talk()
    got = receiver.current
    receiver.recv(1 << 20)
    got.local.condition = Condition("com.microsoft:dead-letter", "bad", {symbol("DeadLetterReason"): "r"})
    got.update(Delivery.REJECTED)
    talk()
    back.settle()
    talk()
    got.settle()
    second = send(links["receiver"], "u" * 16, b"again")
    talk()
    got = receiver.current
    receiver.recv(1 << 20)
    got.local.failed = True
    got.local.undeliverable = True
    got.local.annotations = {symbol("k"): 1}
    got.update(Delivery.MODIFIED)
    got.settle()
    second.settle()
    receiver.drain(0)
    talk()
    links["receiver"].drained()
    talk()
    links["receiver"].condition = Condition("amqp:link:detach-forced", "idle")
    links["receiver"].close()
    receiver.close()
    sender.detach()
    talk()
    session.close()
    talk()
    server.connection.condition = Condition("amqp:connection:forced", "bye")
    server.connection.close()
    talk()
    client.connection.close()
    talk()


if __name__ == "__main__":
    {"values": values, "messages": messages, "captured": captured}[sys.argv[1]]()
