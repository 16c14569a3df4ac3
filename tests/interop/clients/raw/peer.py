"""A client that is only a socket: it writes bytes and looks at every byte that comes back.

`Peer` reads headers and frames with the decoder in ../../wire. Nothing is answered by itself: no
heartbeat, no flow, no close, so a scenario sees exactly what the broker does.
"""

import base64
import hashlib
import os
import socket
import ssl
import struct
import time

from report import check, context
from wire import frames
from wire.frames import Frame, Header, frame, header
from wire.values import (NULL, Value, binary, boolean, described, list_, map_, string, symbol, text, ubyte, uint, ulong,
                         ushort)

WAIT = 5.0
ACCEPTED = described(ulong(0x24), list_())


class Ended(Exception):
    """The broker closed the socket."""


class Peer:
    def __init__(self, profile="main", tls=False, certificate=False):
        broker = context["brokers"][profile]
        self.broker = broker
        self.socket = socket.create_connection(("127.0.0.1", broker["port"]), WAIT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        if tls:
            self.start_tls(certificate)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def start_tls(self, certificate=False):
        tls = ssl.create_default_context(cafile=self.broker["ca"])
        if certificate:
            tls.load_cert_chain(context["client_certificate"], context["client_key"])
        self.socket = tls.wrap_socket(self.socket, server_hostname=self.broker["host"])

    def send(self, *pieces):
        self.socket.sendall(b"".join(pieces))

    def receive(self, deadline):
        """More bytes from the transport; raises Ended at its end, TimeoutError at the deadline."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(65536)
        except (ConnectionResetError, BrokenPipeError, ssl.SSLEOFError) as e:
            raise Ended from e
        if not data:
            raise Ended
        return data

    def item(self, seconds=WAIT):
        """The next header or frame."""
        deadline = time.monotonic() + seconds
        while True:
            size = self._item_size()
            if size and len(self.buffer) >= size:
                items, rest = frames.split(self.buffer[:size])
                check(len(items) == 1 and not rest, "one item expected")
                self.buffer = self.buffer[size:]
                return items[0]
            self.buffer += self.receive(deadline)

    def _item_size(self):
        if len(self.buffer) < 8:
            return 0
        return 8 if self.buffer[:4] == b"AMQP" else struct.unpack(">I", self.buffer[:4])[0]

    def header(self, protocol):
        """The next item is a protocol header with this protocol id."""
        got = self.item()
        check(isinstance(got, Header) and got.bytes == header(protocol),
              f"expected {header(protocol)!r}, got {frames.frame_text(got)}")

    def frame(self, name, seconds=WAIT, skip=("empty",)):
        """The next frame that is not to be skipped; it must be called `name`."""
        while True:
            got = self.item(seconds)
            check(isinstance(got, Frame), f"expected {name}, got {frames.frame_text(got)}")
            if got.name == name:
                return got
            check(got.name in skip, f"expected {name}, got {frames.frame_text(got)}")

    def ended(self, seconds=WAIT):
        """The broker closes the socket now and sends nothing more."""
        deadline = time.monotonic() + seconds
        try:
            while True:
                self.buffer += self.receive(deadline)
        except Ended:
            check(not self.buffer, f"bytes before the end: {self.buffer[:64].hex()}")
        except TimeoutError:
            raise AssertionError("the broker left the socket open") from None

    # The usual ways to get going.

    def sasl(self, mechanism="ANONYMOUS", response=NULL):
        self.send(header(3), init(mechanism, response))
        self.header(3)
        self.frame("mechanisms")
        return self.frame("outcome")

    def plain(self, rule=None, key=None):
        rule, key = rule or context["rule"], key or context["key"]
        return self.sasl("PLAIN", binary(b"\0" + rule.encode() + b"\0" + key.encode()))

    def open(self, *fields):
        self.send(header(0), open_(*fields))
        self.header(0)
        return self.frame("open")

    def begin(self, channel=0):
        self.send(begin(channel))
        return self.frame("begin")

    def ready(self):
        """PLAIN, open and one session: everything is allowed from here on."""
        check(self.plain().field(0).value == 0, "PLAIN was refused")
        self.open()
        self.begin()
        return self

    def closed_with(self, *conditions):
        """The broker closes the connection with one of these conditions."""
        got = self.frame("close", skip=("empty", "flow", "begin", "open"))
        check_error(got.field(0), *conditions)
        check(len(got.fields) == 1, f"close has {len(got.fields)} fields")
        self.send(frame(0, "close"))
        self.ended()
        return text(got.field(0))


class WebSocketPeer(Peer):
    """The same over a WebSocket; `status` and `fields` are the answer to the upgrade."""

    def __init__(self, protocols, path="/$servicebus/websocket", profile="main"):
        super().__init__(profile)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: localhost:{self.broker['port']}", "Upgrade: websocket",
                 "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        if protocols:
            lines.append(f"Sec-WebSocket-Protocol: {protocols}")
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.raw = b""
        deadline = time.monotonic() + WAIT
        while b"\r\n\r\n" not in self.raw:
            self.raw += super().receive(deadline)
        head, self.raw = self.raw.split(b"\r\n\r\n", 1)
        first, *rest = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.fields = {k.strip().lower(): v.strip() for k, v in (line.split(":", 1) for line in rest)}
        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        self.accept = base64.b64encode(digest).decode()

    def send(self, *pieces):
        for piece in pieces:  # one message per piece
            mask = os.urandom(4)
            check(len(piece) < 65536, "too long for this little client")
            size = bytes([0x80 | len(piece)]) if len(piece) < 126 else b"\xfe" + struct.pack(">H", len(piece))
            self.socket.sendall(b"\x82" + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(piece)))

    def _raw(self, size, deadline):
        while len(self.raw) < size:
            self.raw += super().receive(deadline)
        piece, self.raw = self.raw[:size], self.raw[size:]
        return piece

    def receive(self, deadline):
        first, second = self._raw(2, deadline)
        check(second < 0x80, "a server must not mask")
        size = second
        if second == 126:
            size = struct.unpack(">H", self._raw(2, deadline))[0]
        elif second == 127:
            size = struct.unpack(">Q", self._raw(8, deadline))[0]
        data = self._raw(size, deadline)
        if first & 0x0F == 8:
            raise Ended
        check(first & 0x0F in (0, 2), f"not a binary message: {first:#x}")
        return data


# Frames, with the fields a scenario does not care about filled in.

def init(mechanism, response=NULL):
    return frame(0, "init", symbol(mechanism), response, string("localhost"), sasl=True)


def open_(container="raw", frame_max=1048576, channel_max=65535, idle=None):
    return frame(0, "open", string(container), string("localhost"), uint(frame_max), ushort(channel_max),
                 NULL if idle is None else uint(idle))


def begin(channel=0, handle_max=100):
    return frame(channel, "begin", NULL, uint(0), uint(2048), uint(2048), uint(handle_max))


def source(address, *more):
    return described(ulong(0x28), list_(*([string(address)] if address is not None else [NULL]), *more))


def target(address, *more):
    return described(ulong(0x29), list_(*([string(address)] if address is not None else [NULL]), *more))


def attach(name, handle, receiver, source_, target_, channel=0, modes=(2, 0)):
    return frame(channel, "attach", string(name), uint(handle), boolean(receiver), ubyte(modes[0]), ubyte(modes[1]),
                 source_, target_, NULL, NULL, NULL if receiver else uint(0))


def flow(channel=0, handle=None, credit=None, echo=False):
    return frame(channel, "flow", uint(0), uint(2048), uint(0), uint(2048),
                 NULL if handle is None else uint(handle), NULL if handle is None else uint(0),
                 NULL if credit is None else uint(credit), NULL, boolean(False), boolean(echo))


def transfer(handle, payload, delivery_id=0, channel=0, settled=False):
    return frame(channel, "transfer", uint(handle), uint(delivery_id), binary(b"tag"), uint(0), boolean(settled),
                 payload=payload)


def put_token(name, token, message_id, reply_to):
    return b"".join(frames.encode(section) for section in (
        described(ulong(0x73), list_(message_id, NULL, string("$cbs"), NULL, string(reply_to))),
        described(ulong(0x74), map_((string("operation"), string("put-token")),
                                    (string("type"), string("servicebus.windows.net:sastoken")),
                                    (string("name"), string(name)))),
        described(ulong(0x77), string(token))))


# Checks that name what is wrong.

def check_fields(got, count):
    check(len(got.fields) == count, f"{got.name} has {len(got.fields)} fields, not {count}: {frames.frame_text(got)}")


def check_kind(value, kind, what):
    check(value.kind == kind, f"{what} is {text(value)}, expected {kind}")
    return value.value


def check_error(value, *conditions):
    check(isinstance(value, Value) and value.kind == "described" and value.value[0] == ulong(0x1D),
          f"an error is missing: {text(value)}")
    fields = value.value[1].value
    check(len(fields) == 3, f"the error has {len(fields)} fields, not 3: {text(value)}")
    check(fields[0].kind == "symbol" and fields[0].value in conditions,
          f"expected {' or '.join(conditions)}, got {text(value)}")
    check(fields[1].kind == "string" and fields[1].value, f"the description is missing: {text(value)}")
    return fields[1].value
