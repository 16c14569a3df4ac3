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

    def test_trouble_has_its_exit_codes(self):
        self.assertEqual(self.run_it("import", self.path("nothing.json")).returncode, 2)
        self.assertEqual(self.run_it("import", self.path("broken.json", "{")).returncode, 2)
        self.assertEqual(self.run_it("export", "--connection", "nonsense").returncode, 2)
        nobody = self.run_it("export", "--connection", "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=k;SharedAccessKey=k;"
                                                       "UseDevelopmentEmulator=true")
        self.assertEqual(nobody.returncode, 1, nobody.stderr)


if __name__ == "__main__":
    unittest.main()
