"""What the broker does with broken input, and that nobody else notices (contract 1.2, 1.6, 8)."""

import os
import struct
import time

from peer import Ended, Peer, attach, begin, flow, open_, source, target, transfer
from report import check, context, scenario
from wire.frames import frame, header
from wire.values import NULL, uint

FRAMING = "amqp:connection:framing-error"
DECODE = "amqp:decode-error"


def violation(*conditions, data):
    with Peer().ready() as peer:
        peer.send(data)
        return peer.closed_with(*conditions)


@scenario("violation/frame-too-large")
def frame_too_large():
    # Only the frame header: the size alone is the offence, nobody should wait for the rest.
    return violation(FRAMING, data=struct.pack(">IBBH", 65537, 2, 0, 0)) + violation(
        FRAMING, data=struct.pack(">IBBH", 0xFFFFFFFF, 2, 0, 0))


@scenario("violation/frame-too-small")
def frame_too_small():
    return violation(FRAMING, data=struct.pack(">IBBH", 7, 2, 0, 0)) + violation(FRAMING, data=bytes(8))


@scenario("violation/data-offset")
def data_offset():
    return violation(FRAMING, data=struct.pack(">IBBH", 8, 1, 0, 0)) + violation(
        FRAMING, data=struct.pack(">IBBH", 12, 200, 0, 0) + bytes(4))


@scenario("violation/decode-error")
def decode_error():
    bodies = (
        b"\x00\x53\x13\xc0\x20\x04\x43",  # a list that claims more bytes than the frame has
        b"\x00\x53\x13\xc0\x03\x04\x43\x43",  # more elements than bytes
        b"\x00\x53\x13\xd0\xff\xff\xff\xff\xff\xff\xff\xff",  # four billion elements
        b"\x00\x53\x13\xc0\x02\x01\x3f",  # an unknown constructor
        b"\x00" * 64,  # descriptors of descriptors
        b"\x40",  # no performative at all
        b"\x00\x53\x99\x45",  # an unknown performative
    )
    for body in bodies:
        violation(DECODE, FRAMING, "amqp:not-implemented", "amqp:not-allowed",
                  data=struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body)


@scenario("violation/no-open")
def no_open():
    with Peer() as peer:
        peer.send(header(0), begin())
        peer.header(0)
        try:
            return peer.closed_with("amqp:not-allowed", "amqp:illegal-state", FRAMING)
        except Ended:
            return "the socket was closed without a word"


@scenario("violation/channel-too-high")
def channel_too_high():
    return violation(FRAMING, "amqp:not-allowed", data=begin(5000))


def session_ended(condition, *data):
    with Peer().ready() as peer:
        peer.send(*data)
        got = peer.frame("end", skip=("empty", "flow", "attach"))
        error = got.field(0).value[1].value
        check(error[0].value == condition, f"expected {condition}, got {error}")
        check(len(error) == 3 and len(got.fields) == 1, "short lists")
        peer.send(frame(0, "end"))
        peer.begin()  # the connection lives on


@scenario("violation/unattached-handle")
def unattached_handle():
    session_ended("amqp:session:unattached-handle", transfer(9, b"\x00\x53\x77\x40"))
    session_ended("amqp:session:unattached-handle", flow(handle=9, credit=1))


@scenario("violation/handle-in-use")
def handle_in_use():
    session_ended("amqp:session:handle-in-use", attach("one", 0, False, source("me"), target("$cbs")),
                  attach("two", 0, False, source("me"), target("$cbs")))


GARBAGE = (b"\x00" * 8, b"HELO there\r\n\r\n", b"AMQ" + b"\xff" * 5, bytes(range(128, 200)), b"\r\n" * 10)


@scenario("garbage/closes")
def garbage_closes():
    for garbage in GARBAGE:
        with Peer() as peer:
            peer.send(garbage)
            peer.ended()


@scenario("garbage/tls-garbage")
def tls_garbage():
    for garbage in (b"\x16\x03\x01\x00\x20" + bytes(32), b"\x16\x03\x01\xff\xff" + os.urandom(600)):
        with Peer() as peer:
            peer.send(garbage)
            try:
                while True:
                    peer.buffer = b""  # a TLS alert may come first
                    peer.item()
            except Ended:
                continue


@scenario("garbage/others-undisturbed")
def others_undisturbed():
    with Peer().ready() as good:
        for round_ in range(4):
            for garbage in (*GARBAGE, header(3) + os.urandom(200), header(0) + os.urandom(200)):
                with Peer() as bad:
                    bad.send(garbage)
            good.send(flow(echo=True))
            good.frame("flow")
            name = f"link-{round_}"
            good.send(attach(name, round_, False, source("me"), target(context["queue"])))
            check(good.frame("attach").field(0).value == name, "another link answered")
            check(good.frame("detach").field(0) != NULL, "no handle")
            good.send(frame(0, "detach", uint(round_)))


@scenario("limit/connections")
def limit_connections():
    kept = [Peer("limited") for _ in range(3)]
    try:
        for peer in kept:
            peer.ready()
        with Peer("limited") as fourth:
            fourth.plain()
            fourth.send(header(0), open_())
            fourth.header(0)
            text = fourth.closed_with("amqp:resource-limit-exceeded")
        kept[0].send(flow(echo=True))
        kept[0].frame("flow")
        kept[0].send(frame(0, "close"))
        kept[0].frame("close")
        kept[0].ended()
        kept[0].socket.close()
        # The place is free once the broker has seen our end of the socket close, a moment later.
        deadline = time.monotonic() + 5
        while True:
            try:
                with Peer("limited") as next_:
                    next_.ready()
                return text
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
    finally:
        for peer in kept:
            peer.socket.close()
