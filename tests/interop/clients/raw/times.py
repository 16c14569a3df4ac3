"""Heartbeats, time limits and the shutdown (contract 1.4, 1.6)."""

import time

from peer import Ended, Peer, check_error, flow
from report import ask, check, scenario
from wire.frames import EMPTY_FRAME, frame


@scenario("idle/keep-alive")
def keep_alive():
    """A client that asks for a frame each second gets one, without asking again."""
    with Peer() as peer:
        peer.plain()
        peer.open("idle", 65536, 10, 1000)
        until, longest, last, count = time.monotonic() + 4, 0.0, time.monotonic(), 0
        while time.monotonic() < until:
            got = peer.item(2)
            check(got.name == "empty" and got.channel == 0, f"expected an empty frame, got {got}")
            now = time.monotonic()
            longest, last, count = max(longest, now - last), now, count + 1
        check(longest < 1.0, f"{longest:.2f} s without a frame")
        return f"{count} empty frames in 4 s, at most {longest:.2f} s apart"


@scenario("idle/silent-client-dropped")
def silent_client():
    with Peer("idle") as silent, Peer("idle") as beating:
        beating.ready()
        silent.plain()
        idle = silent.open().field(4).value / 1000
        check(idle == 5, f"the broker advertises {idle} s, configured are 5")
        started = time.monotonic()
        how = None
        while how is None:
            check(time.monotonic() - started < 3 * idle, f"silent for {3 * idle} s, and still there")
            beating.send(EMPTY_FRAME)  # who heartbeats may stay
            try:
                check_error(silent.frame("close", seconds=1).field(0), "amqp:resource-limit-exceeded",
                            "amqp:connection:forced")
                how = "close"
            except Ended:
                how = "the socket was closed without a word"
            except TimeoutError:
                pass
        waited = time.monotonic() - started
        check(waited > idle - 1, f"dropped after {waited:.1f} s already")
        beating.send(flow(echo=True))
        beating.frame("flow")
        return f"{how} after {waited:.1f} s"


@scenario("token/none-is-dropped")
def none_is_dropped():
    with Peer("strict") as trusted, Peer("strict") as stranger:
        trusted.ready()
        started = time.monotonic()
        stranger.sasl()
        stranger.open()
        try:
            got = stranger.frame("close", seconds=8)
            check_error(got.field(0), "amqp:unauthorized-access")
            how = "close"
        except Ended:
            how = "the socket was closed without a word"
        except TimeoutError:
            raise AssertionError("8 s without a token, and still there (TokenSeconds is 2)") from None
        waited = time.monotonic() - started
        check(waited > 1, f"dropped after {waited:.1f} s already (TokenSeconds is 2)")
        trusted.send(flow(echo=True))
        trusted.frame("flow")
        return f"{how} after {waited:.1f} s"


@scenario("shutdown/forced")
def shutdown_forced():
    with Peer("shutdown").ready() as peer, Peer("shutdown") as half_open:
        half_open.sasl()  # a connection in the middle of its handshake must not hold up the broker
        ask("stop", "shutdown")
        got = peer.frame("close", skip=("empty", "end"))
        check(len(got.fields) == 1, "close has not 1 field")
        description = check_error(got.field(0), "amqp:connection:forced")
        try:
            peer.send(frame(0, "close"))
            peer.ended()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it is gone already, as it should be
    ask("start", "shutdown")
    with Peer("shutdown") as peer:
        peer.ready()
    return description
