"""azure-servicebus against the broker. Scenario names: runner/scenarios.py."""

import threading
import time

from azure.core.credentials import AccessToken
from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType
from azure.servicebus.exceptions import (MessagingEntityNotFoundError, ServiceBusAuthenticationError,
                                         ServiceBusAuthorizationError, ServiceBusConnectionError,
                                         ServiceBusError)

import admin  # noqa: F401
import admin_access  # noqa: F401
import admin_bearer  # noqa: F401
import admin_counts  # noqa: F401
import admin_forward  # noqa: F401
import admin_methods  # noqa: F401
import namespaces  # noqa: F401
import partitions  # noqa: F401  these and the module queues register their scenarios
import rest  # noqa: F401
import sessions  # noqa: F401
import topics  # noqa: F401
from report import REGISTERED, ask, check, context, run

QUEUE, TOPIC, SUBSCRIPTION = context["queue"], context["topic"], context["subscription"]
BROKERS = context["brokers"]
NO_RETRY = {"retry_total": 0, "socket_timeout": 10}
NOT_FOUND = (MessagingEntityNotFoundError,)
UNAUTHORIZED = (ServiceBusAuthenticationError, ServiceBusAuthorizationError)


# Each of these opens one link to an entity that does not exist.
def use_sender(client):
    with client.get_queue_sender(QUEUE) as sender:
        sender.send_messages(ServiceBusMessage("x"))


def use_receiver(client):
    with client.get_queue_receiver(QUEUE) as receiver:
        receiver.receive_messages(max_wait_time=1)


def use_subscription(client):
    with client.get_subscription_receiver(TOPIC, SUBSCRIPTION) as receiver:
        receiver.receive_messages(max_wait_time=1)


def use_session(client):
    with client.get_queue_receiver(QUEUE, session_id="session-1") as receiver:
        receiver.receive_messages(max_wait_time=1)


def expect(client, use, kinds):
    try:
        use(client)
    except kinds as e:
        return f"{type(e).__name__}: {e}"
    except ServiceBusConnectionError as e:
        # With a custom endpoint the SDK dresses a refused token as a connection error; the real one is inside.
        inner = type(e.inner_exception).__name__
        check(kinds is UNAUTHORIZED and inner in ("AuthenticationException", "TokenAuthFailure"),
              f"expected {kinds[0].__name__}, got {type(e).__name__} with {inner}: {e}")
        return f"{type(e).__name__} with {inner}: {e}"
    except Exception as e:
        raise AssertionError(f"expected {kinds[0].__name__}, got {type(e).__name__}: {e}") from e
    raise AssertionError(f"expected {kinds[0].__name__}, but it worked")


def by_string(which, kinds, use=use_sender, **options):
    def scenario():
        broker = BROKERS["main"]
        extra = {**NO_RETRY, **{k: v(broker) for k, v in options.items()}}
        with ServiceBusClient.from_connection_string(broker[which], **extra) as client:
            return expect(client, use, kinds)
    return scenario


def custom_endpoint(broker):
    return f"sb://{broker['host']}:{broker['port']}"


def amqp(_):
    return TransportType.Amqp


def websocket(_):
    return TransportType.AmqpOverWebsocket


# Without UseDevelopmentEmulator the port of the string is dropped; the custom endpoint has it. A custom
# endpoint means WebSocket to the SDK unless the transport is named.
SECURE = {"custom_endpoint_address": custom_endpoint, "connection_verify": lambda broker: broker["ca"]}


class StaticCredential:
    def __init__(self, token):
        self.token = token

    def get_token(self, *scopes, **kwargs):
        return AccessToken(self.token, int(time.time()) + 3600)


def by_jwt(which, kinds):
    def scenario():
        broker = BROKERS["jwt"]
        with ServiceBusClient(broker["host"], StaticCredential(context["jwt"][which]),
                              custom_endpoint_address=custom_endpoint(broker), connection_verify=broker["ca"],
                              transport_type=TransportType.Amqp, **NO_RETRY) as client:
            return expect(client, use_sender, kinds)
    return scenario


def untrusted():
    broker = BROKERS["restart"]
    with ServiceBusClient.from_connection_string(
            broker["tls"], custom_endpoint_address=custom_endpoint(broker),
            connection_verify=context["untrusted_ca"], transport_type=TransportType.Amqp, **NO_RETRY) as client:
        try:
            use_sender(client)
        except ServiceBusError as e:
            check("certificate" in str(e).lower(), f"not refused because of the certificate: {e}")
            return str(e)
        raise AssertionError("it trusted a broker it must not trust")


def restart():
    with ServiceBusClient.from_connection_string(
            BROKERS["restart"]["emulator"], retry_total=6, retry_backoff_factor=0.3, retry_backoff_max=1,
            socket_timeout=5) as client:
        expect(client, use_sender, NOT_FOUND)
        ask("stop", "restart")
        outcome = []

        def during():
            try:
                use_sender(client)
                outcome.append("worked")
            except Exception as e:  # pylint: disable=broad-except
                outcome.append(type(e).__name__)

        thread = threading.Thread(target=during, daemon=True)
        thread.start()
        time.sleep(1)
        ask("start", "restart")
        thread.join(15)
        expect(client, use_sender, NOT_FOUND)
        return f"during: {outcome}"


run({
    **REGISTERED,
    "connect-tcp/sender": by_string("emulator", NOT_FOUND, use_sender),
    "connect-tcp/receiver": by_string("emulator", NOT_FOUND, use_receiver),
    "connect-tcp/subscription": by_string("emulator", NOT_FOUND, use_subscription),
    "connect-tcp/session": by_string("emulator", NOT_FOUND, use_session),
    "connect-tls/trusted": by_string("tls", NOT_FOUND, transport_type=amqp, **SECURE),
    "connect-tls/untrusted": untrusted,
    "connect-websocket/wss": by_string("tls", NOT_FOUND, transport_type=websocket, **SECURE),
    "connect-websocket/ws": by_string("emulator", NOT_FOUND, transport_type=websocket,
                                      custom_endpoint_address=custom_endpoint),
    "wrong-key/key": by_string("wrong_key", UNAUTHORIZED),
    "wrong-key/rule": by_string("wrong_rule", UNAUTHORIZED),
    "wrong-key/expired-sas": by_string("sas_expired", UNAUTHORIZED),
    "wrong-key/other-entity": by_string("sas_other_entity", UNAUTHORIZED),
    "wrong-key/malformed-sas": by_string("sas_malformed", UNAUTHORIZED),
    "sas-string/namespace": by_string("sas_namespace", NOT_FOUND),
    "sas-string/entity": by_string("sas_entity", NOT_FOUND),
    "jwt/hs256": by_jwt("hs256", NOT_FOUND),
    "jwt/rs256": by_jwt("rs256", NOT_FOUND),
    "jwt/bad-signature": by_jwt("bad-signature", UNAUTHORIZED),
    "jwt/expired": by_jwt("expired", UNAUTHORIZED),
    "reconnect/restart": restart,
})
