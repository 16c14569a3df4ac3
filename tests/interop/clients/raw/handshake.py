"""Protocol headers, TLS upgrade, SASL, WebSocket upgrade (contract 1.1 to 1.3)."""

from peer import Peer, WebSocketPeer, begin, check_fields, init, open_
from report import check, context, scenario
from wire.frames import frame, header
from wire.values import NULL, binary, symbol, text

OFFERED = ["MSSBCBS", "PLAIN", "ANONYMOUS"]


@scenario("header/sasl")
def header_sasl():
    with Peer() as peer:
        peer.send(header(3))
        peer.header(3)
        peer.frame("mechanisms")  # without waiting for our sasl-init


@scenario("header/no-sasl")
def header_no_sasl():
    with Peer() as peer:
        peer.open()


@scenario("header/tls-upgrade")
def header_tls_upgrade():
    with Peer() as peer:
        peer.send(header(2))
        peer.header(2)
        peer.start_tls()
        peer.ready()


@scenario("header/tls-inside-tls")
def header_tls_inside_tls():
    with Peer(tls=True) as peer:
        peer.send(header(2))
        peer.header(3)
        peer.ended()


def answered_and_closed(first_bytes, answer, profile="main"):
    with Peer(profile) as peer:
        peer.send(first_bytes)
        peer.header(answer)
        peer.ended()


@scenario("header/other-version")
def header_other_version():
    for version in (b"AMQP\x00\x00\x09\x01", header(0, 1, 1, 0), header(3, 2, 0, 0), header(0, 0, 9, 1)):
        answered_and_closed(version, 3)


@scenario("header/other-protocol")
def header_other_protocol():
    for protocol in (1, 4, 255):
        answered_and_closed(header(protocol), 3)


@scenario("header/require-tls-sasl")
def require_tls_sasl():
    answered_and_closed(header(3), 2, "tls")


@scenario("header/require-tls-plain")
def require_tls_plain():
    answered_and_closed(header(0), 2, "tls")
    with Peer("tls", tls=True) as peer:
        peer.ready()


def mechanisms(peer):
    peer.send(header(3))
    peer.header(3)
    got = peer.frame("mechanisms")
    check_fields(got, 1)
    check(got.type == 1 and got.channel == 0, "not a SASL frame on channel 0")
    check(got.field(0).kind == "array" and got.field(0).value[0] == "symbol", f"not an array: {text(got.field(0))}")
    return [v.value for v in got.field(0).value[2]]


@scenario("sasl/mechanisms")
def sasl_mechanisms():
    for tls in (False, True):
        with Peer(tls=tls) as peer:
            offered = mechanisms(peer)
            check(offered == OFFERED, f"offered {offered}")


@scenario("sasl/external-offered")
def sasl_external():
    with Peer("certificates", tls=True, certificate=True) as peer:
        offered = mechanisms(peer)
        check(offered == [*OFFERED, "EXTERNAL"], f"offered {offered} to a client with a certificate")
    with Peer("certificates") as peer:
        offered = mechanisms(peer)
        check("EXTERNAL" not in offered, f"offered {offered} without TLS")


def check_welcome(outcome):
    check_fields(outcome, 2)
    check(outcome.field(0).kind == "ubyte" and outcome.field(0).value == 0, f"code {text(outcome.field(0))}")
    check(outcome.field(1) == binary(b"Welcome!"), f"additional-data {text(outcome.field(1))}")


@scenario("sasl/welcome")
def sasl_welcome():
    for response in (NULL, binary(b""), binary(b"anonymous"), binary(b"\0RootManageSharedAccessKey")):
        with Peer() as peer:
            check_welcome(peer.sasl("ANONYMOUS", response))
    with Peer() as peer:
        check_welcome(peer.plain())


@scenario("sasl/mssbcbs")
def sasl_mssbcbs():
    with Peer() as peer:
        check_welcome(peer.sasl("MSSBCBS"))
        peer.open()


@scenario("sasl/wrong-password")
def sasl_wrong_password():
    for rule, key in ((context["rule"], "not-the-key"), ("NoSuchRule", context["key"])):
        with Peer() as peer:
            code = peer.plain(rule, key).field(0)
            check(code.kind == "ubyte" and code.value == 1, f"code {text(code)}")
            peer.ended()
    for malformed in (b"", b"no separators", b"\0\0", b"a\0b\0c\0d"):
        with Peer() as peer:
            code = peer.sasl("PLAIN", binary(malformed)).field(0)
            check(code.value != 0, f"{malformed!r} was accepted")
            peer.ended()


@scenario("sasl/unknown-mechanism")
def sasl_unknown():
    for mechanism in ("SCRAM-SHA-256", "EXTERNAL", "plain"):
        with Peer() as peer:
            code = peer.sasl(mechanism).field(0)
            check(code.value != 0, f"{mechanism} was accepted")
            peer.ended()


@scenario("sasl/oversized-frame")
def sasl_oversized():
    with Peer() as peer:
        peer.send(header(3))
        peer.header(3)
        peer.frame("mechanisms")
        # Only the size word and a little more: the broker needs no further byte to know.
        peer.send(frame(0, "init", symbol("ANONYMOUS"), binary(bytes(600)), sasl=True)[:64])
        try:
            outcome = peer.frame("outcome")
            check(outcome.field(0).value != 0, "a SASL frame above 512 bytes was accepted")
        except Exception as e:
            check(type(e).__name__ == "Ended", f"neither an outcome nor the end: {e!r}")
            return "closed at once"
        peer.ended()
        return "refused by the outcome"


@scenario("pipelined/sasl")
def pipelined_sasl():
    with Peer() as peer:
        peer.send(header(3), init("ANONYMOUS"), header(0), open_(), begin())
        peer.header(3)
        peer.frame("mechanisms")
        check_welcome(peer.frame("outcome"))
        peer.header(0)
        peer.frame("open")
        peer.frame("begin")


@scenario("websocket/sub-protocol")
def websocket_sub_protocol():
    for offered, expected in (("AMQPWSB10", "AMQPWSB10"), ("amqp", "amqp"), ("mqtt, amqp, AMQPWSB10", "amqp"),
                              ("AMQPWSB10, amqp", "AMQPWSB10")):
        for path in ("/$servicebus/websocket", "/$servicebus/websocket/", "/$servicebus/websocket?a=b"):
            with WebSocketPeer(offered, path) as peer:
                check(peer.status == 101, f"{offered} on {path}: HTTP {peer.status}")
                check(peer.fields.get("sec-websocket-accept") == peer.accept, "wrong Sec-WebSocket-Accept")
                chosen = peer.fields.get("sec-websocket-protocol")
                check(chosen == expected, f"offered {offered}, got {chosen}")


@scenario("websocket/absolute-form")
def websocket_absolute():
    """The Java SDK writes a whole URI into the request line, as HTTP allows. [RFC 9112 3.2.2]"""
    for target in ("https://localhost/$servicebus/websocket", "wss://localhost:443/$servicebus/websocket/"):
        with WebSocketPeer("AMQPWSB10", target) as peer:
            check(peer.status == 101, f"{target}: HTTP {peer.status}")


@scenario("websocket/none-offered")
def websocket_none():
    for offered in (None, "mqtt"):
        with WebSocketPeer(offered) as peer:
            check(peer.status == 400, f"offered {offered}: HTTP {peer.status}")


@scenario("websocket/split-frames")
def websocket_split():
    """A message may hold part of a frame, or several frames: it is one stream of bytes."""
    everything = header(3) + init("ANONYMOUS") + header(0) + open_() + begin()
    for pieces in ([everything], [bytes([b]) for b in everything],
                   [everything[:5], everything[5:20], everything[20:21], everything[21:]]):
        with WebSocketPeer("AMQPWSB10") as peer:
            peer.send(*pieces)
            peer.header(3)
            peer.frame("mechanisms")
            check_welcome(peer.frame("outcome"))
            peer.header(0)
            peer.frame("open")
            peer.frame("begin")
