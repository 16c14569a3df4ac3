"""What the program tells about itself: its log, its audit log, its numbers. OMNIBUS_BINARY names it."""

import base64
import hashlib
import hmac
import json
import signal
import socket
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from test_serve import PATIENCE, Broker

KEY = "c2VjcmV0IG9mIHRoaXMgdGVzdCwgMzIgYnl0ZXMgIQ=="
CONFIG = {
    "UserConfig": {"Namespaces": [{
        "Name": "sbemulatorns",
        "Queues": [{"Name": "orders"}],
        "AuthorizationRules": [{"KeyName": "Root", "PrimaryKey": KEY, "Rights": ["Manage", "Send", "Listen"]}],
    }]},
    "Omnibus": {"AuditLog": "audit.jsonl", "Metrics": {"Open": False}},
}
ENTRY = ('<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><QueueDescription '
         'xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/></content></entry>')


def signed(resource, key=KEY):
    """A SAS token, and its signature."""
    expiry = str(int(time.time()) + 3600)
    resource = urllib.parse.quote_plus(resource)
    signature = base64.b64encode(
        hmac.new(key.encode(), f"{resource}\n{expiry}".encode(), hashlib.sha256).digest()).decode()
    quoted = urllib.parse.quote_plus(signature)
    return f"SharedAccessSignature sr={resource}&sig={quoted}&se={expiry}&skn=Root", signature, quoted


class Observability(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.config = self.folder / "config.json"
        self.config.write_text(json.dumps(CONFIG))
        self.audit = self.folder / "audit.jsonl"
        self.token, *self.secrets = signed("http://localhost/")

    def broker(self, *arguments):
        return Broker(self.folder, "--config", str(self.config), *arguments)

    def ask(self, broker, method, path, token=None, body=None):
        address = broker.addresses[0]
        request = urllib.request.Request(f"http://127.0.0.1:{address['port']}{path}", method=method,
                                         data=body.encode() if body else None)
        if token:
            request.add_header("Authorization", token)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def plain(self, broker, user, password):
        """One SASL PLAIN exchange, then gone."""
        with broker.connect() as connection:
            response = b"\0" + user.encode() + b"\0" + password.encode()
            body = b"\0\x53\x41\xc0" + bytes([len(response) + 10]) + b"\x02\xa3\x05PLAIN\xa0" + bytes(
                [len(response)]) + response
            frame = (len(body) + 8).to_bytes(4, "big") + b"\x02\x01\0\0" + body
            connection.sendall(b"AMQP\3\1\0\0" + frame)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass

    def test_the_log_holds_no_secret_even_at_its_loudest(self):
        with self.broker("--log-level", "trace", "--log-format", "json") as broker:
            broker.ready()
            self.assertEqual(self.ask(broker, "PUT", "/made?api-version=2021-05", self.token, ENTRY)[0], 201)
            self.assertEqual(self.ask(broker, "GET", "/metrics", self.token)[0], 200)
            wrong, *more = signed("http://localhost/", "a wrong key, as long as it may be")
            self.assertEqual(self.ask(broker, "DELETE", "/made?api-version=2021-05", wrong)[0], 401)
            self.plain(broker, "Root", KEY)
            self.plain(broker, "Root", "a password that is wrong")
            code, out, log = broker.end(signal.SIGTERM)
        self.assertEqual(code, 0)
        self.assertIn("authentication failed", log)
        told = log + self.audit.read_text()
        for secret in [KEY, *self.secrets, *more, "a password that is wrong", "a wrong key"]:
            self.assertNotIn(secret, told)
        self.assertNotIn(KEY, out)

    def test_every_line_is_an_object_that_says_whom_it_is_about(self):
        with self.broker("--log-format", "json", "--log-level", "debug") as broker:
            broker.ready()
            self.plain(broker, "Root", KEY)
            _, _, log = broker.end(signal.SIGTERM)
        lines = [json.loads(line) for line in log.splitlines()]
        self.assertTrue(all({"time", "level", "message"} <= line.keys() for line in lines))
        connected = [line for line in lines if line["message"] == "connected"]
        self.assertEqual(len(connected), 1)
        self.assertTrue(connected[0]["connection"].isdigit())
        self.assertTrue(connected[0]["peer"].startswith("127.0.0.1:"))
        self.assertTrue(any(line.get("store") == "0" for line in lines))

    def test_changes_are_in_the_audit_log_and_sighup_begins_a_new_one(self):
        with self.broker() as broker:
            broker.ready()
            self.assertEqual(self.ask(broker, "PUT", "/first?api-version=2021-05", self.token, ENTRY)[0], 201)
            self.until(lambda: "first" in self.audit.read_text())
            old = self.folder / "audit.jsonl.1"
            self.audit.rename(old)
            broker.process.send_signal(signal.SIGHUP)
            self.until(self.audit.exists)
            self.assertEqual(self.ask(broker, "PUT", "/second?api-version=2021-05", self.token, ENTRY)[0], 201)
            self.assertEqual(self.ask(broker, "PUT", "/second?api-version=2021-05", self.token, ENTRY)[0], 409)
            self.assertEqual(broker.end(signal.SIGTERM)[0], 0)
        first = [json.loads(line) for line in old.read_text().splitlines()]
        words = ("who", "action", "kind", "namespace", "entity", "status")
        self.assertEqual([tuple(line[word] for word in words) for line in first],
                         [("configuration", "create", "queue", "sbemulatorns", "orders", 201),
                          ("Root", "create", "queue", "sbemulatorns", "first", 201)])
        second = [json.loads(line)["status"] for line in self.audit.read_text().splitlines()]
        self.assertEqual(second, [201, 409])

    def until(self, holds):
        deadline = time.monotonic() + PATIENCE
        while not holds():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_numbers_need_a_token_when_the_configuration_says_so(self):
        with self.broker() as broker:
            broker.ready()
            self.assertEqual(self.ask(broker, "GET", "/metrics")[0], 401)
            status, text = self.ask(broker, "GET", "/metrics", self.token)
            self.assertEqual(status, 200)
            self.assertIn('omnibus_messages_active{entity="orders",kind="queue"} 0\n', text)
            self.assertIn("omnibus_store_up", text)
            for line in text.splitlines():
                self.assertRegex(line, r'^(# (HELP|TYPE) |[a-z_]+(\{[^}]*\})? [0-9.e+-]+$)')
            self.assertEqual(broker.end(signal.SIGTERM)[0], 0)


if __name__ == "__main__":
    unittest.main()
