"""Performatives of the broker, refusals, addresses, $cbs (contract 0.2, 1.4, 1.5, 2.3, 3)."""

from peer import (ACCEPTED, Peer, attach, begin, check_error, check_fields, check_kind, flow, open_, put_token, source,
                  target, transfer)
from report import check, context, scenario
from wire.frames import frame, frame_text, header
from wire.values import NULL, boolean, decode_all, int_, string, text, uint, ulong, ushort

QUEUE = context["queue"]


@scenario("performatives/open")
def performative_open():
    with Peer() as peer:
        peer.sasl()
        got = peer.open()
    check_fields(got, 10)
    check(check_kind(got.field(0), "string", "container-id"), "container-id is empty")
    check(got.field(1) == NULL, f"hostname is {text(got.field(1))}")
    check(got.field(2) == uint(65536), f"max-frame-size is {text(got.field(2))}")
    check(got.field(3) == ushort(4999), f"channel-max is {text(got.field(3))}")
    idle = check_kind(got.field(4), "uint", "idle-time-out")
    check(idle >= 5000, f"idle-time-out {idle} is below what .NET accepts")
    check(all(v == NULL for v in got.fields[5:]), f"not null: {frame_text(got)}")
    return f"idle-time-out {idle}"


@scenario("performatives/open-small-values")
def performative_open_small():
    with Peer() as peer:
        peer.plain()
        got = peer.open("small", 512, 5)
        check(got.field(2) == uint(512), f"max-frame-size is {text(got.field(2))}")
        check(got.field(3) == ushort(5), f"channel-max is {text(got.field(3))}")
        peer.begin(5)
        # A refusal names the entity; a long name must still fit frames of 512 bytes.
        peer.send(attach("long", 0, False, source("me"), target("q" * 250), channel=5))
        answer = peer.frame("attach")
        check(answer.channel == 5, f"answered on channel {answer.channel}")
        check_error(peer.frame("detach").field(2), "amqp:not-found")


@scenario("performatives/begin")
def performative_begin():
    with Peer() as peer:
        peer.sasl()
        peer.open()
        peer.send(begin(3, handle_max=100))
        got = peer.frame("begin")
        check_fields(got, 8)
        check(got.field(0) == ushort(3), f"remote-channel is {text(got.field(0))}")
        check_kind(got.field(1), "uint", "next-outgoing-id")
        check(check_kind(got.field(2), "uint", "incoming-window") > 0, "incoming-window is 0")
        check(check_kind(got.field(3), "uint", "outgoing-window") > 0, "outgoing-window is 0")
        check(got.field(4) == uint(100), f"handle-max is {text(got.field(4))}")
        peer.send(frame(4, "begin", NULL, uint(0), uint(10), uint(10)))
        check(peer.frame("begin").field(4) == uint(262143), "handle-max without ours must be 262143")


def check_attach(got, name, receiver, source_, target_, modes):
    check_fields(got, 14)
    check(got.field(0).value == name, f"name is {text(got.field(0))}")
    check_kind(got.field(1), "uint", "handle")
    check(got.field(2) == boolean(not receiver), "the role is not inverse")
    check((got.field(3).value, got.field(4).value) == modes, f"settle modes {text(got.field(3))} {text(got.field(4))}")
    check(got.field(5) == source_, f"source is {text(got.field(5))}, not {text(source_)}")
    check(got.field(6) == target_, f"target is {text(got.field(6))}, not {text(target_)}")


@scenario("performatives/attach-cbs")
def performative_attach():
    with Peer() as peer:
        peer.sasl()
        peer.open()
        peer.begin()
        from_, to = source("me"), target("$cbs")
        for number, modes in enumerate(((0, 0), (1, 0), (2, 1))):
            name = f"requests-{number}"
            peer.send(attach(name, number, False, from_, to, modes=modes))
            got = peer.frame("attach", skip=("flow",))
            check_attach(got, name, False, from_, to, modes)
            check_kind(got.field(13), "map", "properties")
        from_, to = source("$cbs"), target("replies")
        peer.send(attach("replies", 9, True, from_, to, modes=(1, 0)))
        got = peer.frame("attach", skip=("flow",))
        check_attach(got, "replies", True, from_, to, (1, 0))
        check(got.field(9) == uint(0), f"initial-delivery-count is {text(got.field(9))}")
        check_kind(got.field(13), "map", "properties")


@scenario("performatives/flow-credit")
def performative_flow():
    with Peer() as peer:
        peer.sasl()
        peer.open()
        peer.begin()
        peer.send(attach("requests", 7, False, source("me"), target("$cbs")))
        answer = peer.frame("attach")
        got = peer.frame("flow")
        check_fields(got, 11)
        check_kind(got.field(0), "uint", "next-incoming-id")
        check(got.field(4) == answer.field(1), f"flow for handle {text(got.field(4))}")
        check_kind(got.field(5), "uint", "delivery-count")
        check(got.field(6) == uint(100), f"link-credit is {text(got.field(6))}")


def refusal(peer, receiver, address=QUEUE, terminus=None):
    """Attaches and expects attach + detach; returns (condition, description)."""
    terminus = terminus or (source(address) if receiver else target(address))
    ends = (terminus, target("me")) if receiver else (source("me"), terminus)
    peer.send(attach("refused", 0, receiver, *ends))
    got = peer.frame("attach")
    check_fields(got, 14)
    check(got.field(0).value == "refused", "another name")
    check(got.field(2) == boolean(not receiver), "the role is not inverse")
    check(got.field(5 if receiver else 6) == NULL, f"the refused terminus is not null: {frame_text(got)}")
    detach = peer.frame("detach")
    check_fields(detach, 3)
    check(detach.field(0) == got.field(1), "another handle")
    check(detach.field(1) == boolean(True), "detach without closed=true")
    error = detach.field(2).value[1].value
    description = check_error(detach.field(2), error[0].value)
    peer.send(frame(0, "detach", uint(0), boolean(True)))
    return error[0].value, description


@scenario("performatives/refusal")
def performative_refusal():
    with Peer().ready() as peer:
        for receiver in (False, True):
            condition, _ = refusal(peer, receiver)
            check(condition == "amqp:not-found", condition)
    # The same handle and name again, after the refusal is over, is no error: the link never was.


@scenario("performatives/refusal-text")
def refusal_text():
    with Peer().ready() as peer:
        for address in (QUEUE, "a/b.c-d_e", "no-such-topic/Subscriptions/s"):
            _, description = refusal(peer, True, address)
            wanted = f"The messaging entity '{address}' could not be found"
            check(wanted.lower() in description.lower(), f"'{wanted}' is not in '{description}'")


@scenario("performatives/detach-answered")
def detach_answered():
    with Peer().ready() as peer:
        peer.send(attach("requests", 0, False, source("me"), target("$cbs")))
        peer.frame("attach")
        peer.frame("flow")
        peer.send(frame(0, "detach", uint(0), boolean(True)))
        got = peer.frame("detach")
        check_fields(got, 3)
        check(got.field(1) == boolean(True) and got.field(2) == NULL, frame_text(got))


@scenario("performatives/end-answered")
def end_answered():
    with Peer().ready() as peer:
        peer.send(frame(0, "end"))
        check_fields(peer.frame("end"), 1)
        peer.begin()  # the channel is free again


@scenario("performatives/close-answered")
def close_answered():
    with Peer().ready() as peer:
        peer.send(frame(0, "close"))
        got = peer.frame("close")
        check_fields(got, 1)
        check(got.field(0) == NULL, frame_text(got))
        peer.ended()


@scenario("performatives/echo-flow")
def echo_flow():
    with Peer().ready() as peer:
        peer.send(flow(echo=True))
        got = peer.frame("flow")
        check_fields(got, 11)
        check_kind(got.field(0), "uint", "next-incoming-id")
        check(got.field(4) == NULL, "a session flow has no handle")


def check_put_token(peer, message_id):
    """Reads disposition and response in either order, and checks both."""
    seen = {}
    while len(seen) < 2:
        got = peer.item()
        check(got.name in ("disposition", "transfer", "flow", "empty"), frame_text(got))
        seen.update({got.name: got} if got.name in ("disposition", "transfer") else {})
    disposition, response = seen["disposition"], seen["transfer"]
    check_fields(disposition, 6)
    check(disposition.field(0) == boolean(True), "the disposition must come from the receiver")
    check(disposition.field(3) == boolean(True) and disposition.field(4) == ACCEPTED, frame_text(disposition))
    check_fields(response, 11)
    check_kind(response.field(1), "uint", "delivery-id")
    check_kind(response.field(2), "binary", "delivery-tag")
    check(response.field(3) == uint(0), f"message-format is {text(response.field(3))}")
    sections = {v.value[0].value: v.value[1] for v in decode_all(response.payload)}
    correlation = sections[0x73].value[5]
    check(correlation == message_id, f"correlation-id is {text(correlation)}, not {text(message_id)}")
    answer = {k.value: v for k, v in sections[0x74].value}
    check(answer["status-code"] == int_(202), f"status-code is {text(answer['status-code'])}")
    check_kind(answer["status-description"], "string", "status-description")
    check("error-condition" not in answer, "error-condition in a success")
    return response


@scenario("cbs/response")
def cbs_response():
    broker = context["brokers"]["main"]
    with Peer() as peer:
        peer.sasl()
        peer.open()
        peer.begin()
        peer.send(attach("replies", 0, True, source("$cbs"), target("here"), modes=(1, 0)), flow(handle=0, credit=10),
                  attach("requests", 1, False, source("me"), target("$cbs")))
        peer.frame("attach")
        peer.frame("attach")
        peer.frame("flow")
        for number, message_id in enumerate((ulong(1), ulong(2**40), string("id"))):
            token = put_token(f"sb://localhost/{QUEUE}", broker["tokens"]["entity"], message_id, "here")
            peer.send(transfer(1, token, number))
            response = check_put_token(peer, message_id)
            check(response.field(4) == boolean(True), "the response link is settled, the response is not")


def everything(name):
    broker = context["brokers"]["main"]
    return (header(0) + open_() + begin()
            + attach("replies", 0, True, source("$cbs"), target("here"), modes=(1, 0)) + flow(handle=0, credit=10)
            + attach("requests", 1, False, source("me"), target("$cbs"))
            + transfer(1, put_token(f"sb://localhost/{QUEUE}", broker["tokens"]["entity"], ulong(name), "here"))
            + attach("queue", 2, False, source("me"), target(QUEUE)))


def expect_everything(peer, name):
    peer.header(0)
    peer.frame("open")
    peer.frame("begin")
    found = {}
    while "detach" not in found or "transfer" not in found:
        got = peer.item()
        found[got.name] = got
    answer = {k.value: v for section in decode_all(found["transfer"].payload) if section.value[0] == ulong(0x74)
              for k, v in section.value[1].value}
    check(answer["status-code"] == int_(202), "the token was not accepted")
    # The attach came after the token in the same bytes, so it is judged with the token's rights.
    check_error(found["detach"].field(2), "amqp:not-found")


@scenario("pipelined/everything")
def pipelined_everything():
    with Peer() as peer:
        peer.send(everything(5))
        expect_everything(peer, 5)


@scenario("pipelined/byte-by-byte")
def pipelined_bytes():
    with Peer() as peer:
        for byte in everything(6):
            peer.send(bytes([byte]))
        expect_everything(peer, 6)


def refused_with(condition, **how):
    with Peer().ready() as peer:
        got, description = refusal(peer, **how)
        check(got == condition, f"expected {condition}, got {got}: {description}")
        return description


@scenario("address/sb-scheme")
def address_sb():
    return refused_with("amqp:invalid-field", receiver=False, address=f"sb://localhost/{QUEUE}")


@scenario("address/absolute")
def address_absolute():
    for scheme in ("amqp", "amqps"):
        for host in ("localhost", "localhost:5672", "name.servicebus.windows.net"):
            refused_with("amqp:not-found", receiver=False, address=f"{scheme}://{host}/{QUEUE}")


@scenario("address/dynamic")
def address_dynamic():
    terminus = source(None, NULL, NULL, NULL, boolean(True))
    return refused_with("amqp:not-implemented", receiver=True, terminus=terminus)


@scenario("address/null-target")
def address_null():
    return refused_with("amqp:invalid-field", receiver=False, terminus=target(None))
