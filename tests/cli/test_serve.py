"""The program as its user meets it: flags, files, exit codes, signals. OMNIBUS_BINARY names it."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BINARY = os.environ.get("OMNIBUS_BINARY", "build/release/omnibus")
PATIENCE = 20  # seconds; only a hanging broker comes near it


class Broker:
    """A running `omnibus serve` on a port of its own."""

    def __init__(self, folder, *arguments, listen=("127.0.0.1:0",)):
        self.data = Path(folder) / "data"
        command = [BINARY, "serve", "--data", str(self.data), *arguments]
        for address in listen:
            command += ["--listen", address]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.first_lines = []

    def ready(self):
        deadline = time.monotonic() + PATIENCE
        while not (self.data / "listen.json").exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"did not come up: {self.process.communicate()}")
            time.sleep(0.005)
        self.addresses = json.loads((self.data / "listen.json").read_text())["listen"]
        return self

    def connect(self, index=0):
        address = self.addresses[index]
        return socket.create_connection((address["host"], address["port"]), PATIENCE)

    def end(self, *signals):
        for number in signals:
            self.process.send_signal(number)
            time.sleep(0.2)
        out, log = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, log

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def opened(connection):
    """Opens AMQP without SASL and never answers a close: a client that hangs."""
    connection.sendall(b"AMQP\0\1\0\0" + b"\0\0\0\x11\x02\0\0\0\0\x53\x10\xc0\x04\x01\xa1\x01x")
    if connection.recv(8) != b"AMQP\0\1\0\0":
        raise AssertionError("no AMQP header came back")
    return connection


class Serve(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_to_end(self, *arguments):
        return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=PATIENCE)

    def test_repeated_listen_gives_each_its_port_and_prints_the_connection_string(self):
        with Broker(self.folder.name, listen=("127.0.0.1:0", "127.0.0.1:0")) as broker:
            broker.ready()
            ports = [address["port"] for address in broker.addresses]
            self.assertEqual(len(set(ports)), 2)
            for index in range(2):
                with broker.connect(index) as connection:
                    connection.sendall(b"AMQP\3\1\0\0")
                    self.assertEqual(connection.recv(8), b"AMQP\3\1\0\0")
            code, out, _ = broker.end(signal.SIGTERM)
            self.assertEqual(code, 0)
            self.assertIn(
                f"Endpoint=sb://localhost:{ports[0]};SharedAccessKeyName=RootManageSharedAccessKey;"
                "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;", out)
            self.assertFalse((broker.data / "listen.json").exists())

    def test_ctrl_c_ends_in_good_order_too(self):
        with Broker(self.folder.name) as broker:
            broker.ready()
            self.assertEqual(broker.end(signal.SIGINT)[0], 0)

    def test_a_second_sigterm_is_immediate(self):
        with Broker(self.folder.name) as broker:
            broker.ready()
            with opened(broker.connect()):  # its close would be awaited for seconds
                code, _, log = broker.end(signal.SIGTERM, signal.SIGTERM)
                self.assertEqual(code, 143)
                self.assertIn("told twice", log)

    def test_one_sigterm_cuts_off_a_client_that_does_not_answer(self):
        with Broker(self.folder.name) as broker:
            broker.ready()
            with opened(broker.connect()):
                self.assertEqual(broker.end(signal.SIGTERM)[0], 0)

    def test_an_address_in_use_is_one_clear_line_and_1(self):
        with Broker(self.folder.name) as broker:
            address = broker.ready().addresses[0]
            with tempfile.TemporaryDirectory() as other:
                result = self.run_to_end("serve", "--data", other, "--listen", f"127.0.0.1:{address['port']}")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"127.0.0.1:{address['port']}", result.stderr)
        self.assertEqual(len([line for line in result.stderr.splitlines() if line.startswith("omnibus:")]), 1)

    def test_a_data_folder_in_use_is_refused(self):
        with Broker(self.folder.name) as broker:
            broker.ready()
            result = self.run_to_end("serve", "--data", str(broker.data), "--listen", "127.0.0.1:0")
        self.assertEqual(result.returncode, 1)
        self.assertIn("in use by another broker", result.stderr)

    def test_a_wrong_address_or_option_is_2(self):
        data = str(Path(self.folder.name) / "data")
        self.assertEqual(self.run_to_end("serve", "--data", data, "--listen", "nonsense").returncode, 2)
        self.assertNotEqual(self.run_to_end("serve", "--unknown").returncode, 0)
        self.assertNotEqual(self.run_to_end("serve", "--log-level", "loud").returncode, 0)

    def test_mistakes_of_a_configuration_have_line_and_key(self):
        file = Path(self.folder.name) / "config.json"
        file.write_text('{ "Omnibus": {\n  "MaxFrameBytes": 1,\n  "Reqire": true } }\n')
        for verb in (["config", "check", str(file)], ["serve", "--config", str(file)]):
            result = self.run_to_end(*verb)
            self.assertEqual(result.returncode, 2, verb)
            self.assertIn("line 2: Omnibus.MaxFrameBytes", result.stderr)
            self.assertIn("line 3: Omnibus.Reqire", result.stderr)
        file.write_text('{ "Omnibus": { "MaxFrameBytes": 65536 } }')
        result = self.run_to_end("config", "check", str(file))
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_check_says_every_mistake_and_serve_the_first(self):
        count = 1500
        config = Path(self.folder.name) / "Config.json"
        config.write_text('{"UserConfig": {"Namespaces": [{"Queues": [\n' +
                          ",\n".join('{"Name": "q%d", "Properties": {"LockDuration": "soon"}}' % n
                                     for n in range(count)) + "]}]}}")
        key = "UserConfig.Namespaces[0].Queues[%d].Properties.LockDuration"
        result = self.run_to_end("config", "check", str(config), "--json")
        report = json.loads(result.stdout)
        self.assertEqual((result.returncode, report["good"]), (2, False))
        self.assertEqual([(one["severity"], one["line"], one["key"]) for one in report["findings"]],
                         [("error", n + 2, key % n) for n in range(count)])
        said = self.run_to_end("config", "check", str(config)).stderr.splitlines()
        self.assertEqual(len(said), count)
        for n, line in enumerate(said):
            self.assertTrue(line.startswith(f"{config}: error: line {n + 2}: {key % n}: expected"), line)
        said = self.run_to_end("serve", "--config", str(config)).stderr.splitlines()
        self.assertEqual((len(said), said[-1]), (101, f"{config}: error: {count - 100} more findings are not shown; "
                                                      "'omnibus config check' says every one"))

    def test_findings_are_json_too(self):
        config = Path(self.folder.name) / "Config.json"
        config.write_text("{}")
        result = self.run_to_end("config", "check", str(config), "--json")
        self.assertEqual((result.returncode, json.loads(result.stdout), result.stderr),
                         (0, {"file": str(config), "good": True, "findings": []}, ""))
        result = self.run_to_end("config", "check", str(config) + "?", "--json")
        self.assertEqual((result.returncode, json.loads(result.stdout)["good"]), (2, False))

    def test_settings_of_the_file_take_effect(self):
        file = Path(self.folder.name) / "config.json"
        file.write_text('{ "Omnibus": { "RequireTls": true, "Listen": [ "127.0.0.1:0" ] } }')
        with Broker(self.folder.name, "--config", str(file), listen=()) as broker:
            broker.ready()
            with broker.connect() as connection:
                connection.sendall(b"AMQP\3\1\0\0")
                self.assertEqual(connection.recv(8), b"AMQP\2\1\0\0")
            self.assertEqual(broker.end(signal.SIGTERM)[0], 0)

    def test_ephemeral_keeps_nothing(self):
        command = [BINARY, "serve", "--ephemeral", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.folder.name) as process:
            lines = [process.stdout.readline() for _ in range(3)]
            data = Path(lines[2].split()[-1])
            self.assertTrue(data.is_dir())
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            self.assertEqual(process.wait(PATIENCE), 0)
        self.assertFalse(data.exists())
        self.assertEqual(list(Path(self.folder.name).iterdir()), [])

    def test_version(self):
        self.assertRegex(self.run_to_end("--version").stdout, r"^omnibus \d+\.\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
