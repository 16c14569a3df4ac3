"""The broker in the place of the official emulator: its ports, its file, its connection strings.

Runs where nothing else listens, in a network of its own if this machine allows that: the ports cannot be chosen.
"""

import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.management import (CorrelationRuleFilter, ServiceBusAdministrationClient, SqlRuleFilter,
                                         TrueRuleFilter)

from report import REGISTERED, Skip, check, context, run, scenario

PLAIN, SECURE, ADMIN = 5672, 5671, 5300
KEY = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
# As the emulator's pages have them.
EMULATOR = f"Endpoint=sb://localhost;{KEY}UseDevelopmentEmulator=true;"
EMULATOR_ADMIN = f"Endpoint=sb://localhost:{ADMIN};{KEY}UseDevelopmentEmulator=true;"
READY_SECONDS = 15


def same(got, expected, what):
    check(got == expected, f"{what}: expected {expected!r}, got {got!r}")


def loopback_up():
    """A new network has a loopback that is down."""
    up_and_running, set_flags = 0x41, 0x8914
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH22x", b"lo", up_and_running))


def answers(port):
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def broker(*flags):
    """`omnibus serve` in an empty folder; gives that folder once all three ports answer."""
    for port in (PLAIN, SECURE, ADMIN):
        if answers(port):
            raise Skip(f"somebody else has port {port}, and this machine has no network for us alone")
    with tempfile.TemporaryDirectory(prefix="omnibus-emulator-") as folder:
        with open(context["log"], "ab") as log:
            process = subprocess.Popen([context["binary"], "serve", *flags], cwd=folder, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + READY_SECONDS
            while not all(map(answers, (PLAIN, SECURE, ADMIN))):
                check(process.poll() is None, f"the broker ended with code {process.returncode}")
                check(time.monotonic() < deadline, f"not all of the ports answer after {READY_SECONDS} s")
                time.sleep(0.05)
            data = pathlib.Path(folder) / "omnibus-data"
            os.environ["REQUESTS_CA_BUNDLE"] = str(data / "tls" / "ca.pem")
            yield data
            process.send_signal(signal.SIGTERM)
            same(process.wait(15), 0, "code of the broker at its end")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def connected(string, **options):
    return ServiceBusClient.from_connection_string(string, retry_total=0, socket_timeout=10, **options)


def received(receiver, count):
    with receiver:
        got, deadline = [], time.monotonic() + 10
        while len(got) < count and time.monotonic() < deadline:
            got += receiver.receive_messages(count - len(got), max_wait_time=2)
        for message in got:
            receiver.complete_message(message)
        return got


@scenario("emulator/default-ports")
def default_ports():
    with broker() as data:
        listen = json.loads((data / "listen.json").read_text())["listen"]
        same({one["port"] for one in listen}, {PLAIN, SECURE, ADMIN}, "listen.json")
        for port in (PLAIN, SECURE, ADMIN):
            with socket.create_connection(("localhost", port), 5):
                pass
        with urllib.request.urlopen(f"http://localhost:{ADMIN}/health", timeout=5) as answer:
            same(json.load(answer), {"status": "healthy", "message": "Service is healthy."}, "health")
        with ServiceBusAdministrationClient.from_connection_string(EMULATOR_ADMIN, retry_total=0) as admin:
            same(admin.get_namespace_properties().name, "sbemulatorns", "namespace")
            same([q.name for q in admin.list_queues()], [], "queues of a new broker")
            admin.create_queue("made")
        # 5672, as the string without a port means it, and 5671, as it means it without UseDevelopmentEmulator.
        with connected(EMULATOR) as client, client.get_queue_sender("made") as sender:
            sender.send_messages(ServiceBusMessage("plain"))
        secure = f"Endpoint=sb://localhost;{KEY}"
        with connected(secure, connection_verify=str(data / "tls" / "ca.pem")) as client:
            with client.get_queue_sender("made") as sender:
                sender.send_messages(ServiceBusMessage("secure"))
            same([str(m) for m in received(client.get_queue_receiver("made"), 2)], ["plain", "secure"], "what came")
        return sorted({one["address"] for one in listen if "address" in one}) or ""


@scenario("emulator/sample-config")
def sample_config():
    check_it = subprocess.run([context["binary"], "config", "check", context["sample"]], capture_output=True, timeout=30,
                              check=False)
    same(check_it.returncode, 0, "config check")
    check(b"warning" not in check_it.stdout + check_it.stderr, f"it says {check_it.stdout + check_it.stderr}")
    hour, minute = datetime.timedelta(hours=1), datetime.timedelta(minutes=1)
    with broker("--config", context["sample"]):
        with ServiceBusAdministrationClient.from_connection_string(EMULATOR_ADMIN, retry_total=0) as admin:
            same([q.name for q in admin.list_queues()], ["queue.1"], "queues")
            queue = admin.get_queue("queue.1")
            same((queue.default_message_time_to_live, queue.lock_duration, queue.max_delivery_count,
                  queue.requires_session, queue.forward_to), (hour, minute, 3, False, None), "queue.1")
            same([t.name for t in admin.list_topics()], ["topic.1"], "topics")
            same(admin.get_topic("topic.1").default_message_time_to_live, hour, "topic.1")
            same([s.name for s in admin.list_subscriptions("topic.1")],
                 [f"subscription.{n}" for n in range(1, 5)], "subscriptions")
            kinds = {}
            for n in range(1, 5):
                [rule] = admin.list_rules("topic.1", f"subscription.{n}")
                kinds[rule.name] = type(rule.filter)
            same(kinds, {"every-field": CorrelationRuleFilter, "own-property": CorrelationRuleFilter,
                         "$Default": TrueRuleFilter, "urgent-north": SqlRuleFilter}, "rules")
        with connected(EMULATOR) as client:
            with client.get_queue_sender("queue.1") as sender:
                sender.send_messages(ServiceBusMessage("to the queue"))
            same([str(m) for m in received(client.get_queue_receiver("queue.1"), 1)], ["to the queue"], "queue.1")
            with client.get_topic_sender("topic.1") as sender:
                sender.send_messages([
                    ServiceBusMessage("1", content_type="text/csv", correlation_id="order-7", subject="invoice",
                                      message_id="message-7", reply_to="answers", reply_to_session_id="their-session",
                                      session_id="our-session", to="accounting"),
                    ServiceBusMessage("2", application_properties={"color": "red"}),
                    ServiceBusMessage("4", subject="urgent", application_properties={"region": "north"})])
            for n, expected in ((1, ["1"]), (2, ["2"]), (3, ["1", "2", "4"]), (4, ["4"])):
                got = received(client.get_subscription_receiver("topic.1", f"subscription.{n}"), len(expected))
                same([str(m) for m in got], expected, f"subscription.{n}")
                if n == 4:
                    same(got[0].application_properties.get(b"lane"), b"fast", "what the action set")
                with client.get_subscription_receiver("topic.1", f"subscription.{n}") as receiver:
                    same(receiver.peek_messages(10), [], f"left in subscription.{n}")


if os.environ.get("OMNIBUS_OWN_NETWORK"):
    loopback_up()
run(REGISTERED, seconds=60)
