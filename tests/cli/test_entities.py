"""Every verb of every kind of entity, and what is our own, against a running broker."""

import json
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from test_client import BINARY, ClientTest, KEY
from test_serve import PATIENCE


class Entities(ClientTest):
    def names(self, *verb):
        return [one["Name"] for one in self.json_of(*verb)]

    def test_a_topic_lives(self):
        made = self.json_of("topic", "create", "life", "--default-message-time-to-live", "1d", "--user-metadata", "m")
        self.assertEqual((made["Name"], made["DefaultMessageTimeToLive"], made["UserMetadata"]), ("life", "P1D", "m"))
        self.assertIn("life", self.names("topic", "list"))
        self.assertRegex(self.good("topic", "list"), r"(?m)^life ")
        changed = self.json_of("topic", "update", "life", "--default-message-time-to-live", "PT2H")
        self.assertEqual((changed["DefaultMessageTimeToLive"], changed["UserMetadata"]), ("PT2H", "m"))
        self.assertRegex(self.good("topic", "show", "life"), r"(?m)^DefaultMessageTimeToLive +PT2H$")
        self.assertEqual(self.run_verb("queue", "show", "life").returncode, 3)
        self.assertEqual(self.good("topic", "delete", "life"), "topic 'life' is gone\n")
        for verb in (["show", "life"], ["update", "life", "--user-metadata", "x"], ["delete", "life"]):
            self.assertEqual(self.run_verb("topic", *verb).returncode, 3, verb)

    def test_a_subscription_lives(self):
        self.good("topic", "create", "papers")
        self.good("subscription", "create", "papers", "daily", "--lock-duration", "30s", "--max-delivery-count", "3")
        self.assertEqual(self.names("subscription", "list", "papers"), ["daily"])
        shown = self.json_of("subscription", "show", "papers", "daily")
        self.assertEqual((shown["LockDuration"], shown["MaxDeliveryCount"]), ("PT30S", 3))
        changed = self.json_of("subscription", "update", "papers", "daily", "--max-delivery-count", "5")
        self.assertEqual((changed["LockDuration"], changed["MaxDeliveryCount"]), ("PT30S", 5))
        self.assertRegex(self.good("subscription", "show", "papers", "daily"), r"(?m)^MaxDeliveryCount +5$")
        self.assertEqual(self.json_of("subscription", "delete", "papers", "daily"), {"deleted": True})
        self.assertEqual(self.names("subscription", "list", "papers"), [])
        for verb in (["show", "papers", "daily"], ["update", "papers", "daily", "--max-delivery-count", "1"],
                     ["delete", "papers", "daily"], ["show", "nowhere", "daily"]):
            self.assertEqual(self.run_verb("subscription", *verb).returncode, 3, verb)

    def test_an_exchange_lives(self):
        self.good("exchange", "create", "lost", "--type", "Fanout")
        document = {"Type": "Direct", "Caption": "kept", "Subscriptions": [{"Name": "eu", "RoutingKey": "eu"}]}
        self.assertEqual(self.good("exchange", "create", "bills", "--document", "-", stdin=json.dumps(document)),
                         "exchange 'bills' is there\n")
        self.assertEqual(self.run_verb("exchange", "create", "bills", "--type", "Direct").returncode, 1)  # it is there
        self.assertRegex(self.good("exchange", "list"), r"(?m)^bills +Direct")
        self.assertLessEqual({"bills", "lost"}, set(self.names("exchange", "list")))
        self.good("exchange", "update", "bills", "--alternate-exchange", "lost", "--unroutable", "Release")
        shown = self.json_of("exchange", "show", "bills")
        self.assertEqual((shown["AlternateExchange"], shown["Unroutable"], shown["Caption"]), ("lost", "Release", "kept"))
        self.assertEqual([one["Name"] for one in shown["Subscriptions"]], ["eu"])
        self.assertRegex(self.good("exchange", "show", "bills"), r"(?m)^Caption +kept$")
        self.good("exchange", "update", "bills", "--alternate-exchange", "")
        shown = self.json_of("exchange", "show", "bills")
        self.assertEqual((shown.get("AlternateExchange"), shown["Unroutable"]), (None, "Release"))
        self.good("send", "bills", "x", "--subject", "eu")
        self.assertEqual(self.good("receive", "bills/Subscriptions/eu", "--wait", "2"), "x\n")
        self.assertEqual(self.json_of("exchange", "delete", "bills"), {"deleted": True})
        self.good("topic", "create", "plain")
        for verb in (["show", "bills"], ["update", "bills", "--unroutable", "Accept"], ["delete", "bills"], ["delete", "plain"]):
            self.assertEqual(self.run_verb("exchange", *verb).returncode, 3, verb)
        self.good("topic", "show", "plain")

    def test_a_namespace_lives(self):
        self.assertEqual(self.good("namespace", "create", "branch", "--host", "a.test"), "namespace 'branch' is there\n")
        hosts = {one["Name"]: one["HostNames"] for one in self.json_of("namespace", "list")}
        self.assertIn("a.test", hosts["branch"])
        self.good("namespace", "update", "branch", "--host", "b.test")
        hosts = {one["Name"]: one["HostNames"] for one in self.json_of("namespace", "list")}
        self.assertTrue("b.test" in hosts["branch"] and "a.test" not in hosts["branch"], hosts)
        self.assertRegex(self.good("namespace", "list"), r"(?m)^branch +.*b\.test")
        self.good("namespace", "update", "branch", "--no-hosts")
        self.assertEqual(self.json_of("namespace", "delete", "branch"), {"deleted": True})
        self.assertNotIn("branch", self.names("namespace", "list"))
        for verb in (["update", "branch", "--host", "c.test"], ["delete", "branch"]):
            self.assertEqual(self.run_verb("namespace", *verb).returncode, 3, verb)


class Messages(ClientTest):
    def test_dead_letters_go_elsewhere_when_told(self):
        self.good("queue", "create", "sick", "--max-delivery-count", "1")
        self.good("queue", "create", "ward")
        self.good("send", "sick", "x", "--count", "2")
        self.good("receive", "sick", "--all", "--ack", "abandon", "--wait", "0.5")
        self.assertEqual(self.good("receive", "sick", "--dead-letter", "--ack", "none", "--wait", "0.5"), "x\n")
        self.assertEqual(len(self.lines_of("peek", "sick", "--dead-letter")), 2)
        self.good("dead-letter", "purge", "ward", "--yes")
        moved = self.json_of("dead-letter", "resubmit", "sick", "--to", "ward", "--count", "1", "--wait", "0.5")
        self.assertEqual(moved, {"resubmitted": 1, "refused": 0, "to": "ward"})
        self.assertEqual((self.active("sick"), self.good("receive", "ward", "--all", "--wait", "0.5")), (0, "x\n"))
        self.assertEqual(self.run_verb("dead-letter", "resubmit", "sick", "--to", "nowhere").returncode, 3)

    def test_peek_begins_where_it_is_told(self):
        self.good("queue", "create", "long", "--requires-session")
        for number in range(4):
            self.good("send", "long", str(number), "--session", "even" if number % 2 == 0 else "odd")
        numbers = [one["sequenceNumber"] for one in self.lines_of("peek", "long")]
        self.assertEqual([one["body"] for one in self.lines_of("peek", "long", "--from", str(numbers[2]))], ["2", "3"])
        self.assertEqual([one["body"] for one in self.lines_of("peek", "long", "--session", "odd")], ["1", "3"])

    def test_bench_of_a_topic_looks_at_a_subscription(self):
        self.good("topic", "create", "wide")
        self.good("subscription", "create", "wide", "all")
        began = time.monotonic()
        figures = self.json_of("bench", "wide", "--from", "wide/Subscriptions/all", "--duration", "1", "--rate", "100",
                               "--size", "64")
        self.assertGreater(figures["accepted"], 0)
        self.assertEqual(figures["received"], figures["accepted"])
        self.assertLessEqual(figures["accepted"], 100 * (time.monotonic() - began) + 100)

    # What goes in and comes out at once changes no depth.
    def test_top_sees_what_goes_in_and_out(self):
        self.good("queue", "create", "busy")
        self.assertRegex(self.good("top", "--once", "--interval", "0.1"), r"(?m)^NAME +KIND +ACTIVE +IN/s +OUT/s +CHANGE ")
        top = self.start("top", "--json", "--interval", "0.3", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            came, went, until = False, False, time.monotonic() + PATIENCE
            while not (came and went) and time.monotonic() < until:
                self.good("send", "busy", "x", "--count", "20")
                self.good("receive", "busy", "--count", "20")
                [row] = [one for one in json.loads(top.stdout.readline()) if one["name"] == "busy"]
                came, went = came or row["inPerSecond"] > 0, went or row["outPerSecond"] > 0
            self.assertTrue(came and went)
        finally:
            top.terminate()
            _, said = top.communicate(timeout=PATIENCE)
        self.assertEqual(said, "")


class Home(ClientTest):
    def test_the_file_below_home_is_read(self):
        with tempfile.TemporaryDirectory() as home:
            (Path(home) / ".config").mkdir()
            (Path(home) / ".config/omnibus").write_text(f"# the shop\n\n{self.where}\n")
            plain = {"OMNIBUS_CONNECTION": "", "XDG_CONFIG_HOME": "", "HOME": home}
            self.assertEqual(self.json_of("namespace", "show", **plain)["Name"], "sbemulatorns")
            (Path(home) / ".config/omnibus").write_text("# nothing\n")
            result = self.run_verb("queue", "list", **plain)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"{home}/.config/omnibus", result.stderr)


class WithoutNumbers(ClientTest):
    """A namespace whose numbers are closed to this key: `top` has depths alone, and says so."""

    @classmethod
    def setUpClass(cls):
        config = tempfile.NamedTemporaryFile("w", suffix=".json")
        cls.addClassCleanup(config.close)
        config.write(json.dumps({"Omnibus": {"Metrics": {"Open": False}}, "UserConfig": {"Namespaces": [
            {"Name": "sbemulatorns"}, {"Name": "other", "HostNames": ["127.0.0.1"], "Queues": [{"Name": "deep"}],
             "AuthorizationRules": [{"KeyName": "RootManageSharedAccessKey", "PrimaryKey": "of-the-other",
                                     "Rights": ["Manage", "Send", "Listen"]}]}]}}))
        config.flush()
        cls.flags = ("--config", config.name)
        super().setUpClass()

    def test_top_says_that_it_only_knows_depths(self):
        where = f"Endpoint=sb://127.0.0.1:{self.port};{KEY.replace('SAS_KEY_VALUE', 'of-the-other')};UseDevelopmentEmulator=true"
        result = self.run_verb("top", "--once", "--interval", "0.1", OMNIBUS_CONNECTION=where)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("does not tell what goes in and out", result.stderr)
        self.assertRegex(result.stdout, r"(?m)^NAME +KIND +ACTIVE +CHANGE ")
        [row] = json.loads(self.good("top", "--once", "--interval", "0.1", "--json", OMNIBUS_CONNECTION=where))
        self.assertEqual((row["name"], row["active"], row["inPerSecond"]), ("deep", 0, None))


if __name__ == "__main__":
    unittest.main()
