"""AMQP frames: cut a byte stream into frames, build frames, write them down.

Notation of a frame: `amqp 0 @ulong:16 [...]` or `sasl 0 ...`: the frame type, the channel (for
SASL the two ignored bytes, always 0 here), the performative, and after ` | ` the payload in hex
when there is one. `amqp 0 empty` is a heartbeat. A protocol header is `header 0 1 0 0`.
"""

import struct
from dataclasses import dataclass
from typing import Optional

from .values import Reader, Value, WireError, decode_all, encode, text

NAMES = {0x10: "open", 0x11: "begin", 0x12: "attach", 0x13: "flow", 0x14: "transfer",
         0x15: "disposition", 0x16: "detach", 0x17: "end", 0x18: "close",
         0x40: "mechanisms", 0x41: "init", 0x42: "challenge", 0x43: "response", 0x44: "outcome"}
CODES = {name: code for code, name in NAMES.items()}


@dataclass(frozen=True)
class Frame:
    type: int
    channel: int
    performative: Optional[Value]  # None: an empty frame
    payload: bytes = b""

    @property
    def name(self):
        return "empty" if self.performative is None else NAMES[self.code]

    @property
    def code(self):
        return self.performative.value[0].value

    @property
    def fields(self):
        return self.performative.value[1].value

    def field(self, index):
        return self.fields[index] if index < len(self.fields) else Value("null")


@dataclass(frozen=True)
class Header:
    bytes: bytes


def header(protocol, major=1, minor=0, revision=0):
    return b"AMQP" + bytes([protocol, major, minor, revision])


def parse_frame(data):
    """The one frame that `data` holds, size word included."""
    if len(data) < 8:
        raise WireError("a frame has at least 8 bytes")
    size, doff, kind, channel = struct.unpack(">IBBH", data[:8])
    if size != len(data):
        raise WireError(f"size word {size}, {len(data)} bytes")
    if doff < 2 or doff * 4 > size:
        raise WireError(f"data offset {doff}")
    if kind not in (0, 1):
        raise WireError(f"frame type {kind}")
    body = data[doff * 4:]
    if not body:
        return Frame(kind, channel, None)
    reader = Reader(body)
    performative = reader.value()
    if performative.kind != "described" or performative.value[0].kind != "ulong":
        raise WireError(f"not a performative: {text(performative)}")
    if performative.value[0].value not in NAMES or performative.value[1].kind != "list":
        raise WireError(f"not a performative: {text(performative)}")
    return Frame(kind, channel, performative, reader.rest())


def frame(channel, name, *fields, payload=b"", sasl=False):
    """Builds the bytes of one frame; fields are Values."""
    body = b"\x00" + bytes([0x53, CODES[name]]) + encode(Value("list", list(fields))) + payload
    return struct.pack(">IBBH", len(body) + 8, 2, 1 if sasl else 0, channel) + body


EMPTY_FRAME = struct.pack(">IBBH", 8, 2, 0, 0)


def split(data):
    """Cuts whole headers and frames off the front of `data`; returns (items, rest)."""
    items = []
    while True:
        if data[:4] == b"AMQP":
            if len(data) < 8:
                return items, data
            items.append(Header(data[:8]))
            data = data[8:]
            continue
        if len(data) < 4:
            return items, data
        size = struct.unpack(">I", data[:4])[0]
        if size < 8:
            raise WireError(f"size word {size}")
        if len(data) < size:
            return items, data
        items.append(parse_frame(data[:size]))
        data = data[size:]


def frame_text(item):
    if isinstance(item, Header):
        return "header " + " ".join(str(b) for b in item.bytes[4:])
    words = ["sasl" if item.type else "amqp", str(item.channel)]
    words.append("empty" if item.performative is None else text(item.performative))
    if item.payload:
        words.append("| " + item.payload.hex())
    return " ".join(words)


def message_text(data):
    """The sections of an encoded message, each a described value, joined by ` / `."""
    return " / ".join(text(v) for v in decode_all(data))
