"""`omnibus export` and `import`: a namespace as a file and back, ARM templates, findings and exit codes."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from test_serve import BINARY, PATIENCE, Broker

CONFIG = {"UserConfig": {"Namespaces": [{
    "Queues": [{"Name": "orders", "Properties": {"MaxDeliveryCount": 4, "ForwardDeadLetteredMessagesTo": "failed"}},
               {"Name": "failed"}],
    "Topics": [{"Name": "sales", "Subscriptions": [{"Name": "large", "Rules": [
        {"Name": "over-100", "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "amount > 100"}}}]}]}],
    "Exchanges": [{"Name": "billing", "Type": "Direct", "Subscriptions": [{"Name": "eu", "RoutingKey": "eu"}]}]}]}}
TEMPLATE = {"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
            "parameters": {"queue": {"type": "string"}},
            "resources": [{"type": "Microsoft.ServiceBus/namespaces/queues",
                           "name": "[concat('ns/', parameters('queue'))]", "properties": {"lockDuration": "PT30S"}}]}


AZ = "/subscriptions/0/resourceGroups/g/providers/Microsoft.ServiceBus/namespaces/shop"
LISTING = [  # as `az servicebus ... list` prints it
    {"id": f"{AZ}/queues/orders", "name": "orders", "lockDuration": "0:00:30", "maxSizeInMegabytes": 16384,
     "enablePartitioning": True, "status": "Active", "sizeInBytes": 0, "countDetails": {"activeMessageCount": 0}},
    {"id": f"{AZ}/queues/orders/authorizationRules/reader", "name": "reader", "rights": ["Listen"]},
    {"id": f"{AZ}/topics/sales", "name": "sales", "defaultMessageTimeToLive": "1 day, 0:00:00"},
    {"id": f"{AZ}/topics/sales/subscriptions/red", "name": "red", "maxDeliveryCount": 4},
    {"id": f"{AZ}/topics/sales/subscriptions/red/rules/red", "name": "red", "filterType": "CorrelationFilter", "action": {},
     "correlationFilter": {"label": "red", "messageId": None, "properties": {}}, "sqlFilter": None}]


class Transfer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, content=None):
        path = Path(self.folder.name) / name
        if content is not None:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def broker(self, name, *arguments):
        broker = Broker(self.path(name), *arguments)
        self.addCleanup(broker.__exit__, None, None, None)
        broker.ready()
        return (f"Endpoint=sb://127.0.0.1:{broker.addresses[0]['port']};SharedAccessKeyName=RootManageSharedAccessKey;"
                "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;")

    def run_it(self, *arguments, **variables):
        return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, **variables})

    def test_a_namespace_goes_through_a_file(self):
        first = self.broker("first", "--config", self.path("config.json", CONFIG))
        out = self.path("out.json")
        exported = self.run_it("export", "--connection", first, "--out", out)
        self.assertEqual(exported.returncode, 0, exported.stderr)
        self.assertIn("2 queues, 1 topics, 1 subscriptions, 1 rules, 1 exchanges", exported.stderr)
        self.assertEqual(os.stat(out).st_mode & 0o777, 0o600)
        self.assertEqual(self.run_it("config", "check", out).returncode, 0)

        second = self.broker("second")
        planned = self.run_it("import", out, "--connection", second, "--dry-run")
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertIn("would be created queue 'orders'", planned.stdout)
        made = self.run_it("import", out, OMNIBUS_CONNECTION=second)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("created exchange 'billing'", made.stdout)
        again = self.run_it("export", "--connection", second)
        self.assertEqual(again.stdout, Path(out).read_text())

    def test_they_find_their_namespace_as_every_verb_does(self):
        where = self.broker("broker", "--config", self.path("config.json", CONFIG))
        home = {"OMNIBUS_CONNECTION": "", "SERVICEBUS_CONNECTION_STRING": "", "XDG_CONFIG_HOME": self.folder.name}
        self.path("omnibus", f"# here\n{where}\n")
        out = self.path("out.json")
        exported = self.run_it("export", "--out", out, "--json", **home)
        self.assertEqual(exported.returncode, 0, exported.stderr)
        self.assertEqual(json.loads(exported.stdout), {"queues": 2, "topics": 1, "subscriptions": 1, "rules": 1, "exchanges": 1})
        plain = self.run_it("export", "--json", **home)
        self.assertEqual((plain.stdout, json.loads(plain.stderr)), (Path(out).read_text(), json.loads(exported.stdout)))
        more = self.path("more.json", {"UserConfig": {"Namespaces": [{"Queues": [
            {"Name": "orders", "Properties": {"RequiresSession": True}}, {"Name": "new"}]}]}})
        done = self.run_it("import", more, "--json", **home)
        self.assertEqual(done.returncode, 1)
        report = json.loads(done.stdout)
        self.assertEqual([report[key] for key in ("source", "dryRun", "created", "updated", "unchanged", "refused")],
                         ["Config.json", False, 1, 0, 0, 1])
        self.assertEqual([(one["action"], one["entity"]) for one in report["entities"]],
                         [("refused", "queue 'orders'"), ("created", "queue 'new'")])
        self.path("omnibus", "nonsense\n")
        for verb in (["export"], ["import", more]):
            wrong = self.run_it(*verb, **home)
            self.assertEqual(wrong.returncode, 2)
            self.assertIn(self.path("omnibus"), wrong.stderr)

    def test_tls_and_time_outs_are_as_for_every_verb(self):
        where = self.broker("broker").replace("UseDevelopmentEmulator=true;", "").replace("127.0.0.1", "localhost")
        self.assertIn("--ca", self.run_it("export", "--connection", where).stderr)
        self.assertEqual(self.run_it("export", "--connection", where, "--insecure", "--timeout", "5").returncode, 0)
        self.assertEqual(self.run_it("export", "--connection", where, "--ca", self.path("broker/data/tls/ca.pem")).returncode, 0)

    def test_one_namespace_of_a_file_is_meant(self):
        where = self.broker("broker")
        several = self.path("several.json", {"UserConfig": {"Namespaces": [
            {"Name": "shop", "Queues": [{"Name": "orders"}]}, {"Name": "office", "Queues": [{"Name": "letters"}]}]}})
        unsaid = self.run_it("import", several, "--connection", where)
        self.assertEqual(unsaid.returncode, 2)
        self.assertIn("2 namespaces, 'shop', 'office'", unsaid.stderr)
        said = self.run_it("import", several, "--connection", where, "--namespace", "office")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("created queue 'letters'", said.stdout)
        self.assertNotIn("orders", said.stdout)

    def test_templates_have_parameters_and_findings_say_where(self):
        where = self.broker("broker")
        template = self.path("main.json", TEMPLATE)
        missing = self.run_it("import", template, "--connection", where)
        self.assertEqual(missing.returncode, 2)
        self.assertIn("resources[0].name: parameters('queue') is not known here; give it with --parameter", missing.stderr)
        given = self.run_it("import", template, "--connection", where, "--parameter", "queue=mine")
        self.assertEqual(given.returncode, 0, given.stderr)
        self.assertIn("created queue 'mine'", given.stdout)
        other = self.path("other.json", {"UserConfig": {"Namespaces": [
            {"Queues": [{"Name": "mine", "Properties": {"RequiresSession": True}}, {"Name": "next"}]}]}})
        refused = self.run_it("import", other, "--connection", where)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("queue 'mine': RequiresSession is false and cannot be changed", refused.stderr)
        self.assertIn("created queue 'next'", refused.stdout)

    def test_what_az_prints_is_made(self):
        where = self.broker("broker")
        made = self.run_it("import", self.path("all.json", LISTING), "--connection", where)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("AuthorizationRules[0]: neither 'PrimaryKey' nor 'SecondaryKey': the keys are generated", made.stderr)
        self.assertIn("listing of az: 3 created", made.stdout)
        space = json.loads(self.run_it("export", "--connection", where).stdout)["UserConfig"]["Namespaces"][0]
        [queue], [topic] = space["Queues"], space["Topics"]
        self.assertEqual([queue["Properties"][name] for name in ("LockDuration", "MaxSizeInMegabytes", "EnablePartitioning")],
                         ["PT30S", 1024, True])
        [access] = queue["Properties"]["AuthorizationRules"]
        self.assertEqual((access["KeyName"], access["Rights"], len(access["PrimaryKey"])), ("reader", ["Listen"], 44))
        self.assertEqual(topic["Properties"]["DefaultMessageTimeToLive"], "P1D")
        [subscription] = topic["Subscriptions"]
        self.assertEqual(subscription["Properties"]["MaxDeliveryCount"], 4)
        self.assertEqual([(rule["Name"], rule["Properties"]["CorrelationFilter"]) for rule in subscription["Rules"]],
                         [("red", {"Label": "red"})])
        # Again: nothing of it is new.
        again = self.run_it("import", self.path("all.json"), "--connection", where)
        self.assertIn("0 created", again.stdout)
        one = self.run_it("import", self.path("one.json", {"id": f"{AZ}/queues/other", "name": "other"}), "--connection", where)
        self.assertIn("created queue 'other'", one.stdout)

    def test_trouble_has_its_exit_codes(self):
        self.assertEqual(self.run_it("import", self.path("nothing.json")).returncode, 2)
        self.assertEqual(self.run_it("import", self.path("broken.json", "{")).returncode, 2)
        self.assertEqual(self.run_it("export", "--connection", "nonsense").returncode, 2)
        nobody = self.run_it("export", "--connection", "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=k;"
                                                       "UseDevelopmentEmulator=true")
        self.assertEqual(nobody.returncode, 1, nobody.stderr)


if __name__ == "__main__":
    unittest.main()
