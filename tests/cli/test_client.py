"""The verbs that talk to a namespace, against a running broker: what they print, their exit codes, and that nothing
is lost when they are stopped in the middle. OMNIBUS_BINARY names the program."""

import base64
import hashlib
import hmac
import http.client
import http.server
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import urllib.parse
import unittest
from pathlib import Path

from test_serve import BINARY, PATIENCE, Broker

KEY = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"


class ClientTest(unittest.TestCase):
    """One broker for a class; each test has entities of its own."""

    flags = ()  # of `serve`

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.broker = Broker(cls.folder.name, *cls.flags)
        cls.addClassCleanup(cls.broker.__exit__)
        cls.port = cls.broker.ready().addresses[0]["port"]
        cls.where = f"Endpoint=sb://localhost:{cls.port};{KEY};UseDevelopmentEmulator=true;"

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if name not in
                ("OMNIBUS_CONNECTION", "SERVICEBUS_CONNECTION_STRING")}
        return {**kept, "XDG_CONFIG_HOME": self.folder.name, "OMNIBUS_CONNECTION": self.where, **more}

    def run_verb(self, *arguments, stdin="", **environment):
        return subprocess.run([BINARY, *arguments], input=stdin, capture_output=True, text=True, timeout=60,
                              env=self.environment(**environment))

    def good(self, *arguments, **more):
        """What it prints; it has to end well."""
        result = self.run_verb(*arguments, **more)
        self.assertEqual(result.returncode, 0, f"{arguments}: {result.stderr}")
        return result.stdout

    def json_of(self, *arguments, **more):
        return json.loads(self.good(*arguments, "--json", **more))

    def lines_of(self, *arguments, **more):
        return [json.loads(line) for line in self.good(*arguments, "--json", **more).splitlines()]

    def active(self, queue):
        return self.json_of("queue", "show", queue)["CountDetails"]["ActiveMessageCount"]

    def ask(self, method, path, body=""):
        """Status and body of an answer over HTTP."""
        audience, expires = urllib.parse.quote("http://localhost/", safe=""), str(int(time.time()) + 600)
        signature = base64.b64encode(hmac.new(b"SAS_KEY_VALUE", f"{audience}\n{expires}".encode(), hashlib.sha256).digest())
        token = (f"SharedAccessSignature sr={audience}&sig={urllib.parse.quote(signature, safe='')}&se={expires}"
                 "&skn=RootManageSharedAccessKey")
        connection = http.client.HTTPConnection("localhost", self.port, timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.request(method, path, body, {"Authorization": token})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def start(self, *arguments, **more):
        return subprocess.Popen([BINARY, *arguments], env=self.environment(), text=True, **more)


class Entities(ClientTest):
    def test_a_queue_lives(self):
        made = self.json_of("queue", "create", "life", "--lock-duration", "30s", "--max-delivery-count", "5",
                            "--user-metadata", "007", "--requires-session")
        self.assertEqual((made["Name"], made["LockDuration"], made["MaxDeliveryCount"], made["UserMetadata"],
                          made["RequiresSession"]), ("life", "PT30S", 5, "007", True))
        changed = self.json_of("queue", "update", "life", "--lock-duration", "PT1M", "--set", "MaxDeliveryCount=7")
        self.assertEqual((changed["LockDuration"], changed["MaxDeliveryCount"], changed["UserMetadata"]),
                         ("PT1M", 7, "007"))
        self.assertIn("life", [queue["Name"] for queue in self.json_of("queue", "list")])
        self.assertRegex(self.good("queue", "list"), r"(?m)^NAME +ACTIVE +DEAD")
        self.assertRegex(self.good("queue", "show", "life"), r"(?m)^LockDuration +PT1M$")
        self.assertEqual(self.json_of("queue", "delete", "life"), {"deleted": True})
        self.assertEqual(self.run_verb("queue", "show", "life").returncode, 3)
        self.assertEqual(self.run_verb("queue", "delete", "life").returncode, 3)
        self.assertEqual(self.run_verb("queue", "update", "life", "--max-delivery-count", "1").returncode, 3)

    def test_a_list_has_all_pages(self):
        # More than one page, without a process for each.
        names = [f"page/{number:03}" for number in range(103)]
        for name in names:
            self.admin_put(name)
        self.assertEqual([q["Name"] for q in self.json_of("queue", "list") if q["Name"].startswith("page/")], names)
        self.assertEqual(self.json_of("queue", "show", "page/007")["Name"], "page/007")

    def admin_put(self, name):
        body = ('<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><QueueDescription '
                'xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/></content></entry>')
        self.assertEqual(self.ask("PUT", f"/{name}?api-version=2021-05", body)[0], 201)

    def test_topics_subscriptions_and_rules(self):
        self.good("topic", "create", "news")
        self.good("subscription", "create", "news", "cheap", "--max-delivery-count", "2")
        self.good("rule", "create", "news", "cheap", "small", "--sql", "price < 10", "--action", "SET seen = true")
        self.good("rule", "delete", "news", "cheap", "$Default")
        self.good("rule", "create", "news", "cheap", "red", "--correlation", "Label=red", "--correlation", "size:int=3")
        self.assertRegex(self.good("rule", "list", "news", "cheap"),
                         r"(?m)^red +Label=red, size=3$[^$]*^small +price < 10 +SET seen = true$")
        rule = self.json_of("rule", "show", "news", "cheap", "small")
        self.assertEqual((rule["Filter"]["Type"], rule["Filter"]["SqlExpression"]), ("SqlFilter", "price < 10"))
        self.good("rule", "update", "news", "cheap", "small", "--sql", "price < 5")
        self.good("send", "news", "pencil", "-p", "price=1")
        self.good("send", "news", "pen", "-p", "price=7")
        received = self.lines_of("receive", "news/Subscriptions/cheap", "--all", "--wait", "0.5")
        self.assertEqual([(m["body"], m["properties"]) for m in received], [("pencil", {"price": 1, "seen": True, "RuleName": "small"})])
        self.assertEqual([s["Name"] for s in self.json_of("subscription", "list", "news")], ["cheap"])
        self.assertEqual(self.run_verb("rule", "create", "news", "cheap", "none").returncode, 2)
        self.assertEqual(self.run_verb("rule", "create", "news", "cheap", "bad", "--sql", "price <").returncode, 1)
        self.assertEqual(self.run_verb("subscription", "list", "nowhere").returncode, 3)
        self.assertEqual(self.run_verb("queue", "delete", "news").returncode, 3)  # it is a topic
        self.good("topic", "delete", "news")

    def test_the_namespace_says_its_name(self):
        self.assertEqual(self.json_of("namespace", "show")["Name"], "sbemulatorns")
        self.assertIn("sbemulatorns", [one["Name"] for one in self.json_of("namespace", "list")])

    def test_top_sees_depths(self):
        self.good("queue", "create", "deep")
        self.good("send", "deep", "x", "--count", "5")
        [row] = [one for one in self.json_of("top", "--once", "--interval", "0.1") if one["name"] == "deep"]
        self.assertEqual((row["kind"], row["active"], row["deadLetter"], row["activePerSecond"]), ("queue", 5, 0, 0))
        self.assertRegex(self.good("top", "--once", "--interval", "0.1"), r"(?m)^deep +queue +5 ")


class Messages(ClientTest):
    def test_what_is_received_can_be_sent_again(self):
        self.good("queue", "create", "there")
        self.good("queue", "create", "back")
        lines = [{"body": "text", "messageId": "1", "subject": "s", "contentType": "text/plain", "correlationId": "c",
                  "properties": {"long": 5, "int": {"type": "int", "value": 5}, "yes": True, "real": 2.5, "text": "t"}},
                 {"bodyBase64": "/wA=", "messageId": {"type": "uuid", "value": "00010203-0405-0607-0809-0a0b0c0d0e0f"}},
                 {"bodyValue": {"type": "int", "value": 3}, "messageId": "3", "timeToLive": "PT1H"}]
        sent = self.json_of("send", "there", "--json-lines", stdin="\n".join(map(json.dumps, lines)))
        self.assertEqual(sent, {"accepted": 3, "refused": 0})
        first = self.good("receive", "there", "--all", "--wait", "0.5", "--json")
        self.good("send", "back", "--json-lines", stdin=first)
        second = self.lines_of("receive", "back", "--count", "3")
        for received in ([json.loads(line) for line in first.splitlines()], second):
            for line, got in zip(lines, received, strict=True):
                self.assertEqual({key: got[key] for key in line}, line)

    def test_bodies_from_everywhere(self):
        self.good("queue", "create", "bodies")
        file = Path(self.folder.name) / "body"
        file.write_text("of a file\n")
        self.good("send", "bodies", "argument")
        self.good("send", "bodies", "--file", str(file))
        self.good("send", "bodies", stdin="of stdin")
        self.good("send", "bodies", "--lines", stdin="a\nb\n")
        self.good("send", "bodies", "again", "--count", "2", "--message-id", "7")
        bodies = [message["body"] for message in self.lines_of("peek", "bodies", "--all")]
        self.assertEqual(bodies, ["argument", "of a file\n", "of stdin", "a", "b", "again", "again"])
        self.assertEqual(self.good("receive", "bodies", "--count", "1"), "argument\n")
        self.assertEqual(self.run_verb("receive", "bodies", "--count", "1", "--mode", "delete").stdout, "of a file\n\n")
        self.assertEqual(self.active("bodies"), 5)

    def test_lines_leave_as_they_come(self):
        self.good("queue", "create", "slow")
        send = self.start("send", "slow", "--lines", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in ("one", "two"):
            send.stdin.write(line + "\n")
            send.stdin.flush()
            self.assertEqual(self.good("receive", "slow", "--wait", "10"), line + "\n")
        _, said = send.communicate("three", timeout=PATIENCE)
        self.assertEqual((send.returncode, said), (0, "3 accepted\n"))

    def test_schedule_and_time_to_live(self):
        self.good("queue", "create", "times")
        self.good("send", "times", "later", "--schedule", "1h", "--ttl", "2h")
        [message] = self.lines_of("peek", "times")
        self.assertEqual((message["state"], message["timeToLive"]), ("scheduled", "PT2H"))
        self.assertIn("no message", self.run_verb("receive", "times", "--wait", "0.2").stderr)

    def test_what_was_not_accepted_is_not_counted(self):
        self.good("queue", "create", "ordered", "--requires-session")
        result = self.run_verb("send", "ordered", "x", "--json")
        self.assertEqual((result.returncode, json.loads(result.stdout)), (1, {"accepted": 0, "refused": 1}))
        self.assertIn("SessionId", result.stderr)
        result = self.run_verb("send", "ordered", "--json-lines", "--json",
                               stdin='{"body":"a","sessionId":"s"}\n{"bdy":"b"}\n')
        self.assertEqual((result.returncode, json.loads(result.stdout)), (2, {"accepted": 1, "refused": 0}))
        self.assertIn("line 2", result.stderr)

    def test_sessions(self):
        self.good("queue", "create", "sessions", "--requires-session")
        for session in ("a", "b", "c"):
            self.good("send", "sessions", session, "--session", session)
        self.assertIn("--next-session", self.run_verb("receive", "sessions").stderr)
        self.assertEqual(self.good("receive", "sessions", "--session", "b", "--wait", "0.5"), "b\n")
        self.assertEqual(self.good("receive", "sessions", "--next-session", "--all", "--wait", "0.5"), "a\nc\n")

    def test_abandoned_messages_come_back_and_die(self):
        self.good("queue", "create", "dead", "--max-delivery-count", "1")
        self.good("send", "dead", "x", "--count", "3", "-p", "kept=1")
        self.assertEqual(self.good("receive", "dead", "--all", "--ack", "abandon", "--wait", "0.5"), "x\n" * 3)
        listed = self.lines_of("dead-letter", "list", "dead")
        self.assertEqual([m["properties"]["DeadLetterReason"] for m in listed], ["MaxDeliveryCountExceeded"] * 3)
        self.assertIn("MaxDeliveryCountExceeded", self.good("dead-letter", "list", "dead"))
        self.assertEqual(self.json_of("dead-letter", "resubmit", "dead", "--count", "2", "--wait", "0.5"),
                         {"resubmitted": 2, "refused": 0, "to": "dead"})
        back = self.lines_of("receive", "dead", "--all", "--wait", "0.5")
        self.assertEqual([m["properties"] for m in back], [{"kept": 1}] * 2)
        self.assertEqual(self.json_of("dead-letter", "purge", "dead", "--yes"), {"purged": 1, "left": 0})

    def test_dead_letters_of_a_subscription_go_to_the_topic(self):
        self.good("topic", "create", "origin")
        for name in ("one", "two"):
            self.good("subscription", "create", "origin", name, "--max-delivery-count", "1")
        self.good("send", "origin", "x")
        self.good("receive", "origin/Subscriptions/one", "--ack", "abandon", "--wait", "0.5")
        self.assertEqual(self.json_of("dead-letter", "resubmit", "origin/Subscriptions/one", "--wait", "0.5")["to"], "origin")
        self.assertEqual(self.good("receive", "origin/Subscriptions/two", "--all", "--wait", "0.5"), "x\nx\n")

    # A known id would be taken for a duplicate, accepted and dropped: the dead letter must not be completed for that.
    def test_resubmitting_where_duplicates_are_detected_needs_new_ids(self):
        self.good("queue", "create", "unique", "--requires-duplicate-detection", "--max-delivery-count", "1")
        self.good("send", "unique", "x", "--message-id", "7")
        self.good("receive", "unique", "--ack", "abandon", "--wait", "0.5")
        result = self.run_verb("dead-letter", "resubmit", "unique")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--new-ids", result.stderr)
        self.assertEqual(self.json_of("dead-letter", "resubmit", "unique", "--new-ids", "--wait", "0.5")["resubmitted"], 1)
        self.assertEqual(self.good("receive", "unique", "--wait", "0.5"), "x\n")

    def test_bench_measures(self):
        self.good("queue", "create", "load")
        figures = self.json_of("bench", "load", "--duration", "0.5", "--senders", "2", "--receivers", "2", "--size", "100")
        self.assertGreater(figures["accepted"], 0)
        self.assertEqual(figures["received"], figures["accepted"])
        self.assertGreater(figures["latencyMilliseconds"]["p99"], 0)
        self.assertEqual(self.active("load"), 0)


class Stopped(ClientTest):
    """Whatever ends a verb, a message is in the queue or was written out."""

    def test_a_broken_pipe_leaves_what_it_did_not_take(self):
        self.good("queue", "create", "pipe")
        total, body = 300, "x" * 5000
        self.good("send", "pipe", "--lines", stdin="".join(f"{n:04} {body}\n" for n in range(total)))
        receive = self.start("receive", "pipe", "--all", "--wait", "1", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = receive.stdout.readline()
        receive.stdout.close()  # the pipe holds 64 KiB: most was never taken
        self.assertEqual(receive.wait(PATIENCE), 1)
        self.assertIn("stays in the queue", receive.stderr.read())
        receive.stderr.close()
        self.assertTrue(first.startswith("0000 "))
        left = [line[:4] for line in self.good("receive", "pipe", "--all", "--wait", "0.5").splitlines()]
        # What is missing is a beginning, and no longer than one round of output.
        self.assertEqual(left, [f"{n:04}" for n in range(total)][total - len(left):])
        self.assertGreaterEqual(len(left), 200)

    def test_a_full_disk_leaves_all(self):
        self.good("queue", "create", "disk")
        self.good("send", "disk", "x", "--count", "3")
        with open("/dev/full", "w") as full:
            receive = self.start("receive", "disk", "--all", "--wait", "0.5", stdout=full, stderr=subprocess.PIPE)
            self.assertEqual(receive.wait(PATIENCE), 1)
            receive.stderr.close()
        self.assertEqual(self.good("receive", "disk", "--all", "--wait", "0.5"), "x\n" * 3)

    def test_follow_ends_with_ctrl_c_in_good_order(self):
        self.good("queue", "create", "follow")
        receive = self.start("receive", "follow", "--follow", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.good("send", "follow", "one")
        self.assertEqual(receive.stdout.readline(), "one\n")
        self.good("send", "follow", "two")
        self.assertEqual(receive.stdout.readline(), "two\n")
        receive.send_signal(signal.SIGINT)
        _, said = receive.communicate(timeout=PATIENCE)
        self.assertEqual((receive.returncode, said), (0, "2 received\n"))
        self.assertEqual(self.active("follow"), 0)

    def test_killed_in_the_middle_nothing_is_lost(self):
        self.good("queue", "create", "killed", "--lock-duration", "5s")
        total = 500
        self.good("send", "killed", "--lines", stdin="".join(f"{n}\n" for n in range(total)))
        output = Path(self.folder.name) / "killed"
        with open(output, "w") as out:
            receive = self.start("receive", "killed", "--all", "--wait", "5", stdout=out, stderr=subprocess.DEVNULL)
            while output.stat().st_size == 0 and receive.poll() is None:
                time.sleep(0.001)
            receive.kill()
            receive.wait()
        written = output.read_text().split("\n")[:-1]
        left, deadline = [], time.monotonic() + 30
        while len(set(written) | set(left)) < total and time.monotonic() < deadline:
            left += self.good("receive", "killed", "--all", "--wait", "6").splitlines()
        self.assertEqual(set(written) | set(left), {str(n) for n in range(total)})

    def test_a_broker_that_goes_away_is_one_clear_line(self):
        with tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
            port = broker.ready().addresses[0]["port"]
            where = f"Endpoint=sb://localhost:{port};{KEY};UseDevelopmentEmulator=true;"
            self.good("queue", "create", "gone", OMNIBUS_CONNECTION=where)
            receive = subprocess.Popen([BINARY, "receive", "gone", "--follow"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, env=self.environment(OMNIBUS_CONNECTION=where))
            self.good("send", "gone", "x", OMNIBUS_CONNECTION=where)
            self.assertEqual(receive.stdout.readline(), "x\n")
            broker.end(signal.SIGTERM)
            _, said = receive.communicate(timeout=PATIENCE)
            self.assertEqual(receive.returncode, 1)
            self.assertIn("omnibus: ", said)


class Connecting(ClientTest):
    def test_nobody_listens(self):
        result = self.run_verb("queue", "list", "--connection", f"Endpoint=sb://localhost:1;{KEY};UseDevelopmentEmulator=true")
        self.assertEqual(result.returncode, 1)
        self.assertIn("omnibus serve", result.stderr)
        result = self.run_verb("send", "q", "x", "--connection", f"Endpoint=sb://localhost:1;{KEY};UseDevelopmentEmulator=true")
        self.assertEqual(result.returncode, 1)
        self.assertIn("omnibus serve", result.stderr)

    def test_a_wrong_key_is_named_and_not_shown(self):
        for verb in (["queue", "list"], ["send", "orders", "x"], ["peek", "orders"]):
            result = self.run_verb(*verb, OMNIBUS_CONNECTION=self.where.replace("SAS_KEY_VALUE", "sesame"))
            self.assertEqual(result.returncode, 1, verb)
            self.assertIn("RootManageSharedAccessKey", result.stderr)
            self.assertNotIn("sesame", result.stderr)

    def test_a_name_that_is_close_is_suggested(self):
        self.good("queue", "create", "invoices")
        for verb in (["queue", "show", "invoice"], ["receive", "invoice"], ["send", "invioces", "x"], ["peek", "Invoicess"]):
            result = self.run_verb(*verb)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("did you mean 'invoices'?", result.stderr)

    def test_tls_needs_a_certificate_that_is_trusted(self):
        where = f"Endpoint=sb://localhost:{self.port};{KEY}"
        self.good("queue", "create", "tls")
        for verb in (["queue", "show", "tls"], ["send", "tls", "x"]):
            result = self.run_verb(*verb, OMNIBUS_CONNECTION=where)
            self.assertEqual(result.returncode, 1)
            self.assertIn("--ca", result.stderr)
            self.good(*verb, "--ca", str(self.broker.data / "tls/ca.pem"), OMNIBUS_CONNECTION=where)
            self.good(*verb, "--insecure", OMNIBUS_CONNECTION=where)

    def test_where_the_connection_string_comes_from(self):
        wrong = "Endpoint=sb://localhost:1;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
        self.good("queue", "list", "--connection", self.where, OMNIBUS_CONNECTION=wrong)
        self.good("queue", "list", OMNIBUS_CONNECTION="", SERVICEBUS_CONNECTION_STRING=self.where)
        with tempfile.TemporaryDirectory() as home:
            (Path(home) / "omnibus").write_text(f"# the shop\n\n{self.where}\n")
            self.good("queue", "list", OMNIBUS_CONNECTION="", XDG_CONFIG_HOME=home)
        result = self.run_verb("queue", "list", OMNIBUS_CONNECTION="nonsense")
        self.assertEqual(result.returncode, 2)
        self.assertIn("OMNIBUS_CONNECTION", result.stderr)

    def test_the_entity_path_is_the_entity(self):
        self.good("queue", "create", "path")
        self.good("send", "--file", "-", stdin="x", OMNIBUS_CONNECTION=self.where + "EntityPath=path")
        self.assertEqual(self.good("receive", OMNIBUS_CONNECTION=self.where + "EntityPath=path"), "x\n")
        self.assertEqual(self.run_verb("receive").returncode, 2)

    def test_mistakes_of_usage_are_2(self):
        for wrong in (["queue"], ["queue", "create"], ["queue", "create", "x", "--lock-duration", "soon"],
                      ["queue", "create", "x", "--unknown"], ["send", "x", "y", "--ttl", "soon"],
                      ["send", "x", "y", "-p", "z"], ["receive", "x", "--mode", "steal"],
                      ["receive", "x", "--all", "--follow"], ["completion", "cmd"]):
            self.assertEqual(self.run_verb(*wrong).returncode, 2, wrong)


class Documents(unittest.TestCase):
    """What is our own, against a server that the test plays: which documents are asked for, and what is made of answers."""

    def setUp(self):
        asked = self.asked = []
        answers = self.answers = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                asked.append((self.command, self.path.split("?")[0], body, dict(self.headers)))
                status, text = answers.get((self.command, self.path.split("?")[0]), (404, "{}"))
                data = (text if isinstance(text, str) else json.dumps(text)).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def run_verb(self, *arguments, stdin=""):
        where = f"Endpoint=sb://127.0.0.1:{self.server.server_port};{KEY};UseDevelopmentEmulator=true;"
        return subprocess.run([BINARY, *arguments, "--connection", where], input=stdin, capture_output=True, text=True,
                              timeout=PATIENCE)

    def test_exchanges(self):
        self.answers["GET", "/$Resources/Exchanges"] = (200, {"value": [{"Name": "news", "Type": "Fanout"}]})
        self.assertRegex(self.run_verb("exchange", "list").stdout, r"(?m)^news +Fanout$")
        self.answers["PUT", "/news"] = (201, {"Name": "news", "Type": "Topic"})
        made = self.run_verb("exchange", "create", "news", "--type", "Topic", "--unroutable", "Release", "--json")
        self.assertEqual((made.returncode, json.loads(made.stdout)["Type"]), (0, "Topic"))
        method, _, body, headers = self.asked[-1]
        self.assertEqual((method, json.loads(body)), ("PUT", {"Type": "Topic", "Unroutable": "Release"}))
        self.assertEqual((headers["Content-Type"], headers["If-None-Match"]), ("application/json", "*"))
        self.assertEqual(self.run_verb("exchange", "create", "news").returncode, 2)

        self.answers["GET", "/news"] = (200, {"Name": "news", "Type": "Topic", "Caption": "kept",
                                              "Subscriptions": [{"Name": "a"}], "State": {}})
        self.assertIn("kept", self.run_verb("exchange", "show", "news").stdout)
        self.assertEqual(self.run_verb("exchange", "update", "news", "--alternate-exchange", "lost").returncode, 0)
        _, _, body, headers = self.asked[-1]
        self.assertEqual(json.loads(body), {"Name": "news", "Type": "Topic", "Caption": "kept", "AlternateExchange": "lost"})
        self.assertEqual(headers["If-Match"], "*")

        self.answers["PUT", "/news"] = (400, {"error": {"code": "ExchangeInvalid", "details": [
            {"path": "/Subscriptions/0", "code": "x", "message": "no routing"}]}})
        refused = self.run_verb("exchange", "create", "news", "--document", "-", stdin='{"Type": "Direct"}')
        self.assertEqual(refused.returncode, 1)
        self.assertIn("/Subscriptions/0: no routing", refused.stderr)
        self.answers["DELETE", "/news"] = (200, "")
        self.assertEqual(self.run_verb("exchange", "delete", "news").returncode, 0)
        self.assertEqual(self.run_verb("exchange", "delete", "other").returncode, 3)

    def test_namespaces(self):
        self.answers["GET", "/$omnibus/namespaces"] = (200, {"value": [{"Name": "shop", "HostNames": ["a.test", "b.test"]}]})
        self.assertRegex(self.run_verb("namespace", "list").stdout, r"(?m)^shop +a\.test, b\.test$")
        self.answers["PUT", "/$omnibus/namespaces/shop"] = (201, {"Name": "shop"})
        self.assertEqual(self.run_verb("namespace", "create", "shop", "--host", "a.test").returncode, 0)
        self.assertEqual(json.loads(self.asked[-1][2]), {"HostNames": ["a.test"]})
        self.assertEqual(self.run_verb("namespace", "create", "shop").returncode, 0)
        self.assertEqual(json.loads(self.asked[-1][2]), {})
        self.assertEqual(self.run_verb("namespace", "update", "shop").returncode, 2)
        self.answers["PUT", "/$omnibus/namespaces/shop"] = (200, {"Name": "shop"})
        changed = self.run_verb("namespace", "update", "shop", "--host", "b.test")
        self.assertEqual(changed.stdout, "namespace 'shop' is changed\n")
        self.assertEqual(json.loads(self.asked[-1][2]), {"HostNames": ["b.test"]})
        self.assertEqual(self.run_verb("namespace", "update", "shop", "--no-hosts").returncode, 0)
        self.assertEqual(json.loads(self.asked[-1][2]), {"HostNames": []})
        self.answers["DELETE", "/$omnibus/namespaces/shop"] = (200, "")
        self.assertEqual(self.run_verb("namespace", "delete", "shop").returncode, 0)
        self.assertEqual(self.run_verb("namespace", "delete", "other").returncode, 3)


class Completion(ClientTest):
    def complete(self, *words):
        script = self.good("completion", "bash")
        line = " ".join(f"'{word}'" for word in words)
        ask = f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _omnibus; printf "%s\\n" "${{COMPREPLY[@]}}"'
        return subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True).stdout.split()

    def test_bash_knows_verbs_and_options(self):
        self.assertEqual(self.complete("omnibus", "que"), ["queue"])
        self.assertEqual(self.complete("omnibus", "queue", "cr"), ["create"])
        self.assertIn("--lock-duration", self.complete("omnibus", "queue", "create", "orders", "--lo"))
        self.assertEqual(self.complete("omnibus", "dead-letter", "resubmit", "--new"), ["--new-ids"])

    def test_zsh_and_fish_have_theirs(self):
        self.assertTrue(self.good("completion", "zsh").startswith("#compdef omnibus\n"))
        self.assertIn("complete -c omnibus -n '__omnibus_at \"queue create\"' -l lock-duration",
                      self.good("completion", "fish"))


if __name__ == "__main__":
    unittest.main()
