"""The data plane over plain HTTP, crossed with azure-servicebus: what one sends the other receives. And the clock.

Only http.client speaks here; a token is made by hand as the documentation of Service Bus shows it.
"""

import base64
import datetime
import hashlib
import hmac
import http.client
import json
import time
import urllib.parse

from azure.servicebus import ServiceBusClient, ServiceBusMessage

from queues import connected, send, take_one, with_queue
from report import check, context, scenario

BATCH = "application/vnd.microsoft.servicebus.json"


def token(resource, name="RootManageSharedAccessKey", key="SAS_KEY_VALUE"):
    quoted, expires = urllib.parse.quote_plus(resource), str(int(time.time()) + 3600)
    signature = base64.b64encode(hmac.new(key.encode(), f"{quoted}\n{expires}".encode(), hashlib.sha256).digest())
    return f"SharedAccessSignature sr={quoted}&sig={urllib.parse.quote_plus(signature)}&se={expires}&skn={name}"


class Http:
    """One kept connection to a broker."""

    def __init__(self, broker="queues", **who):
        at = context["brokers"][broker]
        self.connection = http.client.HTTPConnection(at["host"], at["port"], timeout=20)
        self.token = token(f"http://{at['host']}", **who)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body."""
        self.connection.request(method, path, body, {"Authorization": self.token, **(headers or {})})
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def expect(self, status, method, path, body=None, headers=None):
        got, answered, content = self.ask(method, path, body, headers)
        check(got == status, f"{method} {path}: expected {status}, got {got}: {content!r}")
        return answered, content


def properties(headers):
    return json.loads(headers["BrokerProperties"])


def lock_path(headers):
    return urllib.parse.urlsplit(headers["Location"]).path


@with_queue("rest/send")
def send_by_http(client, queue):
    rest = Http()
    rest.expect(201, "POST", f"/{queue}/messages?timeout=60", "hello", {
        "Content-Type": "text/plain", "Priority-Word": '"high"', "Count": "3", "Share": "0.5", "Urgent": "true",
        "When": '"Sun, 06 Nov 1994 08:49:37 GMT"',
        "BrokerProperties": json.dumps({"MessageId": "m1", "Label": "greeting", "CorrelationId": "c", "To": "you",
                                        "ReplyTo": "me", "SessionId": "s", "PartitionKey": "s", "TimeToLive": 60})})
    with client.get_queue_receiver(queue) as receiver:
        got = take_one(receiver)
        check(str(got) == "hello", f"body {got}")
        check((got.message_id, got.subject, got.correlation_id, got.to, got.reply_to, got.session_id)
              == ("m1", "greeting", "c", "you", "me", "s"), repr(got))
        check(got.content_type == "text/plain", got.content_type)
        check(got.time_to_live == datetime.timedelta(seconds=60), got.time_to_live)
        user = {k.decode().lower(): v for k, v in got.application_properties.items()}
        check(user["priority-word"] == b"high" and user["count"] == 3 and user["share"] == 0.5
              and user["urgent"] is True, repr(user))
        check(set(user) == {"priority-word", "count", "share", "urgent", "when"}, f"no others: {user}")
        receiver.complete_message(got)


@with_queue("rest/receive")
def receive_by_http(client, queue):
    send(client, queue, ServiceBusMessage("one", message_id="m1", subject="gr\u00fcn", content_type="text/plain",
                                          application_properties={"text": "a \"b\"", "n": 5, "yes": True}))
    rest = Http()
    headers, body = rest.expect(201, "POST", f"/{queue}/messages/head?timeout=10")
    check(body == b"one" and headers["Content-Type"] == "text/plain", headers)
    told = properties(headers)
    check((told["MessageId"], told["Label"], told["DeliveryCount"], told["State"])
          == ("m1", "gr\u00fcn", 1, "Active"), told)
    check(headers["text"] == '"a \\"b\\""' and headers["n"] == "5" and headers["yes"] == "true", headers)
    rest.expect(200, "PUT", lock_path(headers))
    headers, _ = rest.expect(201, "POST", f"/{queue}/messages/head?timeout=10")
    check(properties(headers)["DeliveryCount"] == 2, headers)
    renewed, _ = rest.expect(200, "POST", lock_path(headers))
    check("LockedUntilUtc" in properties(renewed), renewed)
    # Either address of the contract: number or message id.
    told = properties(headers)
    rest.expect(200, "DELETE", f"/{queue}/messages/{told['MessageId']}/{told['LockToken']}")
    rest.expect(404, "DELETE", lock_path(headers))
    rest.expect(204, "DELETE", f"/{queue}/messages/head?timeout=0")


@with_queue("rest/batch")
def batch(client, queue):
    rest = Http()
    rest.expect(201, "POST", f"/{queue}/messages", json.dumps([
        {"Body": "one", "BrokerProperties": {"Label": "a", "TimeToLiveTimeSpan": "00:05:00"},
         "UserProperties": {"n": 1}},
        {"Body": base64.b64encode(b"\xff\x00").decode(), "IsBodyBase64": True}]), {"Content-Type": BATCH})
    with client.get_queue_receiver(queue) as receiver:
        first, second = take_one(receiver), take_one(receiver)
        check(first.subject == "a" and first.application_properties == {b"n": 1}, repr(first))
        check(first.time_to_live == datetime.timedelta(minutes=5), first.time_to_live)
        check(b"".join(second.body) == b"\xff\x00", "the bytes are others")
        receiver.complete_message(first)
        receiver.complete_message(second)
    rest.expect(400, "POST", f"/{queue}/messages", '[{"Body":"good"},{"Body":5}]', {"Content-Type": BATCH})
    rest.expect(204, "DELETE", f"/{queue}/messages/head?timeout=0")


@with_queue("rest/receive-and-delete")
def receive_and_delete(client, queue):
    send(client, queue, "one")
    rest = Http()
    headers, body = rest.expect(200, "DELETE", f"/{queue}/messages/head?timeout=10")
    check(body == b"one" and headers["Location"] is None and "LockToken" not in properties(headers), headers)
    with client.get_queue_receiver(queue) as receiver:
        check(not receiver.peek_messages(), "it is gone")


@with_queue("rest/partitioned")
def partitioned(client, queue):
    rest, other = Http(), Http()
    for n in range(20):
        rest.expect(201, "POST", f"/{queue}/messages", str(n))
    got = set()
    for n in range(20):
        headers, body = (rest, other)[n % 2].expect(201, "POST", f"/{queue}/messages/head?timeout=0")
        (other, rest)[n % 2].expect(200, "DELETE", lock_path(headers))
        got.add(int(body))
    check(got == set(range(20)), got)
    rest.expect(204, "POST", f"/{queue}/messages/head?timeout=0")
    # Who waits is woken by whichever partition gets one.
    rest.connection.request("DELETE", f"/{queue}/messages/head?timeout=15", headers={"Authorization": rest.token})
    send(client, queue, "late")
    answer = rest.connection.getresponse()
    check((answer.status, answer.read()) == (200, b"late"), answer.status)


@with_queue("rest/gone")
def gone(client, queue):
    """A client that leaves while it waits swallows nothing."""
    for method in ("POST", "DELETE"):
        waits = Http()
        waits.connection.request(method, f"/{queue}/messages/head?timeout=15", headers={"Authorization": waits.token})
        waits.connection.close()
        send(client, queue, "kept")
        with client.get_queue_receiver(queue) as receiver:
            got = take_one(receiver)
            check(got.delivery_count == 0, f"delivered {got.delivery_count} times before")
            receiver.complete_message(got)


@with_queue("rest/rights")
def rights(client, queue):
    send_only = Http(name="SendOnly", key="send-only-key")
    listen_only = Http(name="ListenOnly", key="listen-only-key")
    _, refused = listen_only.expect(401, "POST", f"/{queue}/messages", "x")
    check(b"<Code>401</Code>" in refused and b"SubCode=40100" in refused, refused)
    send_only.expect(201, "POST", f"/{queue}/messages", "x")
    send_only.expect(401, "DELETE", f"/{queue}/messages/head?timeout=0")
    listen_only.expect(200, "DELETE", f"/{queue}/messages/head?timeout=0")
    _, wrong = Http(key="wrong").expect(401, "POST", f"/{queue}/messages", "x")
    check(b"SubCode=40103" in wrong, wrong)
    Http().expect(404, "POST", "/nobody-has-this-name/messages", "x")


@scenario("clock/lock")
def clock_lock():
    """A lock of five minutes, over in a moment; the SDK's own token and connection do not notice."""
    tool = Http("clock")
    entry = ('<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><QueueDescription '
             'xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"><LockDuration>PT5M'
             '</LockDuration></QueueDescription></content></entry>')
    queue = f"{context['client']}-clock"
    tool.expect(201, "PUT", f"/{queue}", entry)
    text = context["brokers"]["clock"]["emulator"]
    with ServiceBusClient.from_connection_string(text, retry_total=0, socket_timeout=10) as client:
        send(client, queue, "one")
        with client.get_queue_receiver(queue) as receiver:
            first = take_one(receiver)
            _, before = tool.expect(200, "GET", "/$omnibus/clock")
            _, after = tool.expect(200, "POST", "/$omnibus/clock", '{"advance": "PT5M1S"}')
            check(json.loads(after)["offset_ms"] - json.loads(before)["offset_ms"] == 301000, after)
            second = take_one(receiver)
            check(second.delivery_count == 1 and second.sequence_number == first.sequence_number, repr(second))
            receiver.complete_message(second)
    _, purged = tool.expect(200, "POST", f"/$omnibus/purge/{queue}?subqueue=all")
    check(json.loads(purged) == {"purged": 0}, purged)
