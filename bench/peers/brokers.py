"""The brokers that are compared: how each is installed, set up, started and addressed.

Each one is started alone, on ports of 127.0.0.1, with its data in a folder of its own that goes away with it.
Every broker has the same entities: QUEUES queues, one queue to fill deep, and one publish address with FAN_OUT
durable subscribers.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import processes

ROOT = Path(__file__).resolve().parents[2]
QUEUES = 8
FAN_OUT = 10
OPEN_FILES = 20_000
USER, PASSWORD = "bench", "bench-password"
ARTEMIS = "2.44.0"
ARTEMIS_COORDINATES = f"org.apache.activemq:apache-artemis:{ARTEMIS}:zip:bin"
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


class Trouble(Exception):
    """A broker could not be installed, started or loaded."""


class Broker:
    name = ""  # in results and options
    title = ""  # in tables
    durable = True
    warm_up = 1  # times what the others get
    own_connections = True  # its connections are not those of another one in the list
    user, password = USER, PASSWORD

    def __init__(self, work, programs):
        self.folder = work / self.name
        self.downloads = work / "downloads"
        self.programs = programs
        self.port = 0
        self.processes = []
        self.roomy = False

    # ---- what each broker has to say ----
    def install(self):
        pass

    def version(self):
        raise NotImplementedError

    def settings(self):
        """Lines for people: what was set, and why."""
        raise NotImplementedError

    def prepare(self):
        """Writes the configuration into an empty self.folder."""

    def launch(self):
        """Starts the processes."""
        raise NotImplementedError

    def ready(self):
        return processes.answers(self.port)

    def queue(self, index):
        return f"q{index}"

    def deep(self):
        return "deep"

    def fan(self):
        """The address to publish to, and those of the subscribers."""
        raise NotImplementedError

    def data(self):
        return self.folder / "data"

    # ---- the same for all ----
    def spawn(self, command, **more):
        log = open(self.folder / "log", "ab")
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=self.folder,
            **more,
        )
        log.close()
        self.processes.append(process)
        return process

    def start(self, roomy=False):
        """Returns the seconds from the start of the process to its first answer in AMQP. `roomy`: with memory for
        more connections than its production setting may hold."""
        self.roomy = roomy
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.port = processes.free_port()
        self.prepare()
        begin = time.monotonic()
        self.launch()
        while not self.ready():
            if self.processes[-1].poll() is not None or time.monotonic() - begin > 120:
                log = (self.folder / "log").read_text(errors="replace")[-2000:]
                self.stop()
                raise Trouble(f"{self.title} did not come up: {log}")
            time.sleep(0.002)
        return time.monotonic() - begin

    def stop(self):
        for process in reversed(self.processes):
            processes.stop(process)
        self.processes = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def sample(self):
        return processes.Sample([process.pid for process in self.processes])

    def calm(self, at_most):
        """Waits until the broker is nearly idle for a second, at most so long; answers with its last sample."""
        end = time.monotonic() + at_most
        before = self.sample()
        while True:
            time.sleep(1)
            now = self.sample()
            if now.cpu - before.cpu < 0.05 or now.time > end:
                return now
            before = now

    def disk_bytes(self):
        return processes.disk_bytes(self.data())


class Omnibus(Broker):
    name, title = "omnibus", "Omnibus"
    user, password = "RootManageSharedAccessKey", "SAS_KEY_VALUE"

    def version(self):
        out = subprocess.run([self.programs["omnibus"], "--version"], capture_output=True, text=True, check=True)
        return re.search(r"\d\S*", out.stdout)[0]

    def settings(self):
        return [
            "durable as always: an outcome follows the sync of the journal",
            "SASL PLAIN with the default access rule",
            "queues and the topic of 80 GB (`MaxSizeInMegabytes`), no quota on connections",
            "everything else as it comes",
        ]

    def prepare(self):
        big = {"MaxSizeInMegabytes": 81920}
        queues = [self.queue(i) for i in range(QUEUES)] + [self.deep()]
        config = {
            "UserConfig": {
                "Namespaces": [
                    {
                        "Name": "sbemulatorns",
                        "Queues": [{"Name": name, "Properties": big} for name in queues],
                        "Topics": [
                            {
                                "Name": "fan",
                                "Properties": big,
                                "Subscriptions": [{"Name": f"s{i}"} for i in range(FAN_OUT)],
                            }
                        ],
                    }
                ],
                "Logging": {"Type": "Console"},
            },
            "Omnibus": {"Quotas": {"Connections": 0}},
        }
        (self.folder / "config.json").write_text(json.dumps(config))

    def launch(self):
        files = ["--data", self.data(), "--config", self.folder / "config.json"]
        self.spawn([self.programs["omnibus"], "serve", *files, "--listen", f"127.0.0.1:{self.port}"])

    def fan(self):
        return "fan", [f"fan/Subscriptions/s{i}" for i in range(FAN_OUT)]


class Rabbit(Broker):
    kind = ""

    def install(self):
        if shutil.which("rabbitmq-server") or Path("/usr/lib/rabbitmq/bin/rabbitmq-server").exists():
            return
        # The package would start itself as a service: a broker is to be alone here.
        policy = Path("/usr/sbin/policy-rc.d")
        as_root = [] if os.geteuid() == 0 else ["sudo"]
        ours = not policy.exists()
        if ours:
            script = f"printf '#!/bin/sh\\nexit 101\\n' >{policy} && chmod 755 {policy}"
            subprocess.run([*as_root, "sh", "-c", script], check=True)
        try:
            done = subprocess.run([ROOT / "scripts/bootstrap", "peers"])
        finally:
            if ours:
                subprocess.run([*as_root, "rm", "-f", str(policy)], check=True)
        if done.returncode != 0:
            raise Trouble("RabbitMQ could not be installed")

    def version(self):
        done = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"], capture_output=True, text=True, check=True
        )
        return f"{done.stdout} (Debian)"

    def settings(self):
        return [
            f"plugin `rabbitmq_amqp1_0`; durable {self.kind} queues, one node, persistent messages; an outcome is a publisher confirm",
            "`+sbwt none +sbwtdcpu none +sbwtdio none`: idle schedulers do not spin, as its guide advises where cores are"
            " shared",
            f"SASL PLAIN, {OPEN_FILES} open files, everything else as it comes (memory high watermark 0.4)",
        ]

    def prepare(self):
        names = [self.queue_name(i) for i in range(QUEUES)] + ["deep"]
        subscribers = [f"s{i}" for i in range(FAN_OUT)]
        salt = b"salt"
        digest = base64.b64encode(salt + hashlib.sha256(salt + PASSWORD.encode()).digest()).decode()
        definitions = {
            "users": [
                {
                    "name": USER,
                    "password_hash": digest,
                    "hashing_algorithm": "rabbit_password_hashing_sha256",
                    "tags": "administrator",
                }
            ],
            "vhosts": [{"name": "/"}],
            "permissions": [{"user": USER, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
            "queues": [
                {
                    "name": name,
                    "vhost": "/",
                    "durable": True,
                    "auto_delete": False,
                    "arguments": {"x-queue-type": self.kind},
                }
                for name in names + subscribers
            ],
            "exchanges": [
                {
                    "name": "fan",
                    "vhost": "/",
                    "type": "fanout",
                    "durable": True,
                    "auto_delete": False,
                    "internal": False,
                    "arguments": {},
                }
            ],
            "bindings": [
                {
                    "source": "fan",
                    "vhost": "/",
                    "destination": name,
                    "destination_type": "queue",
                    "routing_key": "",
                    "arguments": {},
                }
                for name in subscribers
            ],
        }
        (self.folder / "definitions.json").write_text(json.dumps(definitions))
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            "loopback_users = none\n"
            f"load_definitions = {self.folder}/definitions.json\n"
        )
        (self.folder / "plugins").write_text("[rabbitmq_amqp1_0].\n")
        (self.folder / "home").mkdir()
        self.data().mkdir()

    def launch(self):
        # Our own epmd: the one that Erlang starts by itself would stay behind.
        epmd_port = processes.free_port()
        # The Erlang distribution listens on a loopback address too; nobody else joins this node.
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_DIST_PORT": str(processes.free_port()),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.data()),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}"
            " +sbwt none +sbwtdcpu none +sbwtdio none",
        }
        self.spawn(["epmd", "-address", "127.0.0.1", "-port", str(epmd_port)], env=environment)
        self.spawn(["/usr/lib/rabbitmq/bin/rabbitmq-server"], env=environment)

    def queue_name(self, index):
        return f"q{index}"

    def queue(self, index):
        return f"/amq/queue/{self.queue_name(index)}"

    def deep(self):
        return "/amq/queue/deep"

    def fan(self):
        return "/exchange/fan/", [f"/amq/queue/s{i}" for i in range(FAN_OUT)]


class RabbitClassic(Rabbit):
    name, title, kind = "rabbitmq-classic", "RabbitMQ classic", "classic"


class RabbitQuorum(Rabbit):
    name, title, kind = "rabbitmq-quorum", "RabbitMQ quorum", "quorum"
    own_connections = False


class Artemis(Broker):
    name, title = "artemis", "Artemis"
    warm_up = 4

    def home(self):
        return self.downloads / f"apache-artemis-{ARTEMIS}"

    def install(self):
        if (self.home() / "bin/artemis").exists():
            return
        if not shutil.which("java") or not shutil.which("mvn"):
            if subprocess.run([ROOT / "scripts/bootstrap", "peers"]).returncode != 0:
                raise Trouble("Java and Maven could not be installed")
        self.downloads.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["mvn", "-B", "-q", COPY_GOAL, f"-Dartifact={ARTEMIS_COORDINATES}", f"-DoutputDirectory={self.downloads}"],
            capture_output=True,
            text=True,
        )
        archive = self.downloads / f"apache-artemis-{ARTEMIS}-bin.zip"
        if done.returncode != 0 or not archive.exists():
            raise Trouble(f"Maven could not fetch {ARTEMIS_COORDINATES}: {done.stdout[-500:]}")
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(self.downloads)
        (self.home() / "bin/artemis").chmod(0o755)

    def version(self):
        done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
        return f"{ARTEMIS} (Java {re.search(r'version .([0-9.]+)', done.stderr)[1]})"

    def settings(self):
        return [
            "an instance of `artemis create --aio`: journal of libaio, `journal-datasync` and both `journal-sync` settings"
            " true, its own tuning of the journal's buffer to this disk",
            "heap of 512 MB to 2 GB and the other options of the JVM as `artemis create` writes them, but 8 GB where connections"
            " grow (2 GB do not hold 10,000 of them); no web console",
            "one acceptor (AMQP credit 1000, 300 at least, as created); durable anycast queues, a multicast address with"
            f" durable queues; SASL PLAIN, {OPEN_FILES} open files",
        ]

    def prepare(self):
        instance = self.folder / "instance"
        done = subprocess.run(
            [
                str(self.home() / "bin/artemis"),
                "create",
                str(instance),
                *["--silent", "--aio", "--require-login", "--no-web", "--host", "127.0.0.1"],
                *["--user", USER, "--password", PASSWORD, "--default-port", str(self.port)],
                *(["--java-memory", "8G"] if self.roomy else []),
                *["--no-amqp-acceptor", "--no-mqtt-acceptor", "--no-stomp-acceptor", "--no-hornetq-acceptor"],
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise Trouble(f"artemis create failed: {done.stdout[-500:]} {done.stderr[-500:]}")
        file = instance / "etc/broker.xml"
        file.write_text(with_addresses(file.read_text(), self))

    def launch(self):
        self.spawn([self.folder / "instance/bin/artemis", "run"])

    def fan(self):
        return "fan", [f"fan::s{i}" for i in range(FAN_OUT)]

    def data(self):
        return self.folder / "instance/data"


def with_addresses(xml, broker):
    """Artemis's configuration with the entities in it."""
    space = "urn:activemq:core"
    for prefix, uri in [("", space), ("activemq", "urn:activemq")]:
        ElementTree.register_namespace(prefix, uri)
    tree = ElementTree.fromstring(xml)
    addresses = tree.find(f".//{{{space}}}addresses")

    def address(name, routing, queues):
        entry = ElementTree.SubElement(addresses, f"{{{space}}}address", name=name)
        kind = ElementTree.SubElement(entry, f"{{{space}}}{routing}")
        for queue in queues:
            made = ElementTree.SubElement(kind, f"{{{space}}}queue", name=queue)
            ElementTree.SubElement(made, f"{{{space}}}durable").text = "true"

    for name in [broker.queue(i) for i in range(QUEUES)] + [broker.deep()]:
        address(name, "anycast", [name])
    address("fan", "multicast", [f"s{i}" for i in range(FAN_OUT)])
    return ElementTree.tostring(tree, encoding="unicode")


class Relay(Broker):
    """No broker: what passing messages on costs when nothing is kept."""

    name, title, durable = "relay", "memory-only relay", False
    user = password = ""

    def version(self):
        for package in ("libqpid-proton11", "libqpid-proton11-dev"):
            done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
            if done.returncode == 0:
                return f"Qpid Proton-C {done.stdout}"
        return "Qpid Proton-C"

    def settings(self):
        return [
            "`bench/peers/memory_relay.cpp`: one thread, one deque per address, accepts at once, **nothing on disk**"
        ]

    def launch(self):
        self.spawn([self.programs["memory_relay"], self.folder / "port"])

    def ready(self):
        file = self.folder / "port"
        if file.exists():
            self.port = int(file.read_text())
        return file.exists() and processes.answers(self.port)


ALL = [Omnibus, RabbitClassic, RabbitQuorum, Artemis, Relay]
