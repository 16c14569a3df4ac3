"""Qpid Proton (Python) as a plain AMQP client, without any Service Bus SDK. Names: runner/scenarios.py."""

import pathlib
import sys
import threading
import uuid

from proton import ConnectionException, Message, SSLDomain, Timeout, ulong
from proton.handlers import MessagingHandler
from proton.reactor import Container, LinkOption
from proton.utils import BlockingConnection, LinkDetached

import plain_exchanges  # noqa: F401  these and plain_queues register their scenarios
import plain_transactions  # noqa: F401
from report import REGISTERED, ask, check, context, run, scenario

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from runner.tokens import sas  # noqa: E402

QUEUE, RULE, KEY = context["queue"], context["rule"], context["key"]
BROKERS = context["brokers"]
NOT_FOUND, UNAUTHORIZED = "amqp:not-found", "amqp:unauthorized-access"
AUTH_FAILED, ARGUMENT = "com.microsoft:auth-failed", "com.microsoft:argument-error"
PLAIN = {"user": RULE, "password": KEY, "allowed_mechs": "PLAIN"}
ANONYMOUS = {"allowed_mechs": "ANONYMOUS"}
WAIT = 8


class Connected:
    """A connection for the length of a `with`."""

    def __init__(self, profile="main", scheme="amqp", **options):
        broker = BROKERS[profile]
        self.connection = BlockingConnection(f"{scheme}://{broker['host']}:{broker['port']}", timeout=WAIT,
                                             allow_insecure_mechs=True, reconnect=False, **options)

    def __enter__(self):
        return self.connection

    def __exit__(self, kind, *_):
        try:
            self.connection.close()
        except Exception:  # pylint: disable=broad-except
            if kind is None:
                raise


def expect_refused(connection, address, condition):
    try:
        connection.create_sender(address)
    except LinkDetached as e:
        check(e.condition == condition, f"expected {condition}, got {e.condition}: {e}")
        return str(e)
    raise AssertionError(f"the link was accepted, expected {condition}")


def missing(connection):
    return expect_refused(connection, QUEUE, NOT_FOUND)


def expect_no_connection(**options):
    try:
        with Connected(**options):
            pass
    except ConnectionException as e:
        check("Authentication failed" in str(e), f"not a SASL refusal: {e}")
        return str(e)
    raise AssertionError("the connection was accepted")


class TargetAddress(LinkOption):
    def __init__(self, address):
        self.address = address

    def apply(self, link):
        link.target.address = self.address


class Cbs:
    """A hand-made $cbs client on its own pair of links."""

    def __init__(self, connection):
        self.reply_to = f"reply-{uuid.uuid4()}"
        self.replies = connection.create_receiver("$cbs", credit=10, name=f"cbs-in-{uuid.uuid4()}",
                                                  options=TargetAddress(self.reply_to))
        self.requests = connection.create_sender("$cbs", name=f"cbs-out-{uuid.uuid4()}")

    def request(self, properties, token, message_id="1"):
        self.requests.send(Message(id=message_id, reply_to=self.reply_to, properties=properties, body=token))
        reply = self.replies.receive(timeout=WAIT)
        if self.replies.fetcher.unsettled:  # not when the broker sent it settled
            self.replies.accept()
        return reply

    def put_token(self, name, token, kind="servicebus.windows.net:sastoken", message_id="1"):
        return self.request({"operation": "put-token", "type": kind, "name": name}, token, message_id)


def expect_answer(reply, code, condition=None):
    answer = reply.properties
    check(answer["status-code"] == code, f"expected status {code}, got {answer}")
    check(type(answer["status-code"]).__name__ == "int32", f"status-code is a {type(answer['status-code']).__name__}")
    check(isinstance(answer["status-description"], str), "status-description is not a string")
    check(answer.get("error-condition") == condition, f"expected error-condition {condition}, got {answer}")
    return answer["status-description"]


def name():
    return f"sb://{BROKERS['main']['host']}/{QUEUE}"


def tokens():
    return BROKERS["main"]["tokens"]


def tls(profile, certificate=False):
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(BROKERS[profile]["ca"])
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    if certificate:
        domain.set_credentials(context["client_certificate"], context["client_key"], None)
    return domain


@scenario("plain/right-key")
def plain_right_key():
    with Connected(**PLAIN) as connection:
        return missing(connection)


@scenario("plain/wrong-key")
def plain_wrong_key():
    return expect_no_connection(user=RULE, password="not-the-key", allowed_mechs="PLAIN")


@scenario("plain/unknown-rule")
def plain_unknown_rule():
    return expect_no_connection(user="NoSuchRule", password=KEY, allowed_mechs="PLAIN")


@scenario("plain/tls")
def plain_tls():
    with Connected(scheme="amqps", ssl_domain=tls("main"), **PLAIN) as connection:
        return missing(connection)


@scenario("external/client-certificate")
def external():
    domain = tls("certificates", certificate=True)
    with Connected("certificates", "amqps", ssl_domain=domain, allowed_mechs="EXTERNAL") as connection:
        return missing(connection)


@scenario("anonymous/no-token")
def anonymous_no_token():
    with Connected(**ANONYMOUS) as connection:
        return expect_refused(connection, QUEUE, UNAUTHORIZED)


@scenario("cbs/put-token")
def cbs_put_token():
    with Connected(**ANONYMOUS) as connection:
        expect_refused(connection, QUEUE, UNAUTHORIZED)
        expect_answer(Cbs(connection).put_token(name(), tokens()["entity"]), 202)
        missing(connection)
        return expect_refused(connection, "another-queue", UNAUTHORIZED)  # the token covers its entity only


@scenario("cbs/renewal")
def cbs_renewal():
    with Connected(**ANONYMOUS) as connection:
        cbs = Cbs(connection)
        expect_answer(cbs.put_token(name(), sas(name(), seconds=60)), 202)
        expect_answer(cbs.put_token(name(), sas(name(), seconds=600)), 202)
        return missing(connection)


def cbs_answer(code, condition, *request, **options):
    with Connected(**ANONYMOUS) as connection:
        return expect_answer(Cbs(connection).put_token(*request, **options), code, condition)


@scenario("cbs/unknown-type")
def cbs_unknown_type():
    return cbs_answer(400, ARGUMENT, name(), tokens()["namespace"], kind="amqp:swt")


@scenario("cbs/missing-name")
def cbs_missing_name():
    with Connected(**ANONYMOUS) as connection:
        reply = Cbs(connection).request({"operation": "put-token", "type": "jwt"}, tokens()["namespace"])
        return expect_answer(reply, 400, ARGUMENT)


@scenario("cbs/bad-signature")
def cbs_bad_signature():
    with Connected(**ANONYMOUS) as connection:
        expect_answer(Cbs(connection).put_token(name(), tokens()["bad_signature"]), 401, AUTH_FAILED)
        return expect_refused(connection, QUEUE, UNAUTHORIZED)


@scenario("cbs/expired")
def cbs_expired():
    return cbs_answer(401, AUTH_FAILED, name(), tokens()["expired"])


def cbs_echo(message_id):
    with Connected(**ANONYMOUS) as connection:
        reply = Cbs(connection).put_token(name(), tokens()["entity"], message_id=message_id)
        expect_answer(reply, 202)
        got = reply.correlation_id
        check(got == message_id and isinstance(message_id, type(got)), f"came back as {type(got).__name__} {got}")


@scenario("cbs/id-string")
def cbs_id_string():
    cbs_echo("text-id")


@scenario("cbs/id-ulong")
def cbs_id_ulong():
    cbs_echo(ulong(4294967297))


@scenario("cbs/id-uuid")
def cbs_id_uuid():
    cbs_echo(uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"))


@scenario("cbs/two-pairs")
def cbs_two_pairs():
    with Connected(**ANONYMOUS) as connection:
        first, second = Cbs(connection), Cbs(connection)
        expect_answer(second.put_token(name(), tokens()["bad_signature"]), 401, AUTH_FAILED)
        return expect_answer(first.put_token(name(), tokens()["entity"]), 202)


@scenario("cbs/expiry-detaches-one-link")
def cbs_expiry():
    resource = f"sb://{BROKERS['main']['host']}/"
    with Connected(**ANONYMOUS) as connection:
        cbs = Cbs(connection)
        expect_answer(cbs.put_token(resource, sas(resource, seconds=2)), 202)
        link = connection.create_receiver("$management", credit=1)
        try:
            link.receive(timeout=WAIT)
        except LinkDetached as e:
            check(e.condition == UNAUTHORIZED, f"expected {UNAUTHORIZED}, got {e.condition}: {e}")
            text = str(e)
        except Timeout:
            raise AssertionError("the token expired and the link is still there") from None
        # The $cbs links of the same connection live on and take a new token.
        expect_answer(cbs.put_token(resource, tokens()["namespace"]), 202)
        return text


@scenario("idle/keep-alive")
def idle_keep_alive():
    # Proton advertises half of the heartbeat and gives up after the whole of it.
    with Connected(heartbeat=2, **PLAIN) as connection:
        try:
            connection.wait(lambda: False, timeout=6)
        except Timeout:
            return missing(connection)


class Restart(MessagingHandler):
    """Tries the missing queue on every new connection and ends after the second time."""

    def __init__(self):
        super().__init__()
        self.seen, self.goodbyes = [], []
        self.first, self.done = threading.Event(), threading.Event()

    def on_start(self, event):
        self.connect(event)

    def connect(self, event):
        broker = BROKERS["restart"]
        event.container.connect(f"amqp://{broker['host']}:{broker['port']}", allow_insecure_mechs=True, **PLAIN)

    def on_connection_opened(self, event):
        event.container.create_sender(event.connection, QUEUE)

    def on_link_error(self, event):
        self.seen.append(event.link.remote_condition.name)
        self.first.set()
        if len(self.seen) == 2:
            self.done.set()
            event.connection.close()

    # Proton means to reconnect by itself after amqp:connection:forced, but waits for its own close,
    # which it then never sends. So the application closes and starts anew.
    def on_connection_remote_close(self, event):
        condition = event.connection.remote_condition
        if condition:
            self.goodbyes.append(condition.name)
            event.connection.close()
            event.container.schedule(0.2, self)

    def on_timer_task(self, event):
        self.connect(event)


@scenario("reconnect/restart")
def restart():
    handler = Restart()
    threading.Thread(target=Container(handler).run, daemon=True).start()
    check(handler.first.wait(WAIT), "no first connection")
    ask("stop", "restart")
    ask("start", "restart")
    check(handler.done.wait(12), f"no second connection, seen {handler.seen}")
    check(handler.seen == [NOT_FOUND, NOT_FOUND], f"seen {handler.seen}")
    check(handler.goodbyes == ["amqp:connection:forced"], f"goodbyes {handler.goodbyes}")


run(REGISTERED)
