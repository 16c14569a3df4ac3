"""Where a client may name the host that chooses its namespace, and what that means for PLAIN."""

import ssl

from peer import Peer, attach, source, target
from report import check, context, scenario
from wire.frames import frame, header
from wire.values import NULL, binary, string, symbol, uint, ushort

RULE, KEY = "SecondOnly", "second-key"


def plain(peer, host=None, rule=RULE, key=KEY):
    """The code of the outcome."""
    response = binary(b"\0" + rule.encode() + b"\0" + key.encode())
    peer.send(header(3), frame(0, "init", symbol("PLAIN"), response, string(host) if host else NULL, sasl=True))
    peer.header(3)
    peer.frame("mechanisms")
    return peer.frame("outcome").field(0).value


def send_open(peer, host=None):
    peer.send(header(0), frame(0, "open", string("raw"), string(host) if host else NULL, uint(65536), ushort(100)))
    peer.header(0)


def is_inside(peer, host=None):
    """Opens; whether the queue that only the second namespace has can be sent to."""
    send_open(peer, host)
    peer.frame("open")
    peer.begin()
    peer.send(attach("s", 0, False, source("raw"), target("only-in-second")))
    return peer.frame("attach").field(6) != NULL


@scenario("namespace/host-in-sasl")
def in_sasl():
    with Peer("namespaces") as peer:
        check(plain(peer, "second.test:5672") == 0, "refused by its own namespace")
        check(is_inside(peer), "not in the namespace that SASL named")
    with Peer("namespaces") as peer:
        check(plain(peer, "localhost") == 1, "the default namespace knows the rule of another")
    with Peer("namespaces") as peer:
        check(plain(peer, "second.test") == 0, "refused by its own namespace")
        send_open(peer, "localhost")
        return peer.closed_with("amqp:unauthorized-access")  # what `open` says counts


@scenario("namespace/host-in-open")
def in_open():
    with Peer("namespaces") as peer:
        check(plain(peer) == 0, "refused before its namespace was known")
        check(is_inside(peer, "SECOND.localhost."), "not in the namespace that open named")
    with Peer("namespaces") as peer:
        check(plain(peer, key="not-the-key") == 0, "refused before its namespace was known")
        send_open(peer, "second.test")
        peer.closed_with("amqp:unauthorized-access")
    with Peer("namespaces") as peer:
        check(plain(peer, rule=context["rule"], key=context["key"]) == 0, "refused by the default namespace")
        check(not is_inside(peer, "anything.example"), "an unknown host name is another namespace's")


@scenario("namespace/host-in-tls")
def in_tls():
    with Peer("namespaces") as peer:
        tls = ssl.create_default_context(cafile=peer.broker["ca"])
        tls.check_hostname = False
        peer.socket = tls.wrap_socket(peer.socket, server_hostname="second.test")
        check(plain(peer) == 0, "refused by its own namespace")
        check(is_inside(peer), "not in the namespace of the TLS hello")
