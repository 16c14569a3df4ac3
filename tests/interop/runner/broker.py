"""Starts and stops the broker under test, one process per profile, each with its own data folder."""

import json
import signal
import socket
import subprocess
import time

from . import scenarios

READY_SECONDS = 15
STOP_SECONDS = 15


class BrokerError(Exception):
    pass


def settings(profile, material):
    """The broker's Config.json for a profile. Every guess about its keys is in this function."""
    omnibus = {
        "main": {},
        "queues": {"Quotas": {"PartitionedEntities": 0}, "Shards": scenarios.STORES},
        "restart": {},
        "shutdown": {},
        "admin": {},
        "clock": {},
        "counts": {},
        "namespaces": {"Tls": {"Names": ["own-js.localhost", "own-python.localhost"]}},
        "strict": {"TokenSeconds": 2},
        "limited": {"Quotas": {"Connections": 3}},
        "tls": {"RequireTls": True},
        "idle": {"IdleTimeOutSeconds": 5},
        "jwt": {"JwtIssuers": [{
            "Issuer": material.issuer, "Audiences": [material.audience],
            "Hs256Secret": material.jwt_secret, "JwksFile": str(material.jwks_path)}]},
        "certificates": {
            "Tls": {"ClientCaFile": str(material.client_ca)},
            "ClientCertificates": [{"Name": material.client_subject, "Rights": ["Send", "Listen"]}]},
    }[profile]
    entities = {"queues": scenarios.config_entities, "counts": lambda: scenarios.COUNTED_ENTITIES}.get(
        profile, lambda: {"Queues": [], "Topics": []})()
    further = [{"Name": "second", "HostNames": ["second.test"], "Queues": [{"Name": "only-in-second"}],
                "AuthorizationRules": [{"KeyName": "SecondOnly", "PrimaryKey": "second-key",
                                        "Rights": ["Send", "Listen"]}]}] if profile == "namespaces" else []
    return {
        "UserConfig": {
            "Namespaces": [{"Name": "sbemulatorns", **entities, "AuthorizationRules": [
                {"KeyName": "SendOnly", "PrimaryKey": "send-only-key", "SecondaryKey": "send-only-key-2",
                 "Rights": ["Send"]},
                {"KeyName": "ListenOnly", "PrimaryKey": "listen-only-key", "SecondaryKey": "listen-only-key-2",
                 "Rights": ["Listen"]}]}, *further],
            "Logging": {"Type": "Console"}},
        "Omnibus": omnibus,
    }


def chosen_port(listen_json):
    """The port in DATA/listen.json. Every guess about that file is in this function."""
    return json.loads(listen_json)["listen"][0]["port"]


def ca_path(data):
    return data / "tls" / "ca.pem"


class Broker:
    def __init__(self, binary, profile, folder, material, logs):
        self.binary, self.profile = binary, profile
        self.data = folder / f"data-{profile}"
        self.config = folder / f"config-{profile}.json"
        self.log_path = logs / f"broker-{profile}.log"
        self.log_path.write_bytes(b"")
        self.config.write_text(json.dumps(settings(profile, material), indent=1))
        self.port = 0
        self.process = None

    @property
    def ca(self):
        return ca_path(self.data)

    def start(self):
        """Starts on a free port, later again on the same one. Raises BrokerError when it is not ready in time."""
        listen = self.data / "listen.json"
        if listen.exists():
            listen.unlink()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--data", str(self.data), "--listen", f"127.0.0.1:{self.port}",
                 "--config", str(self.config), *(["--test-clock"] if self.profile == "clock" else [])], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                code, self.process = self.process.returncode, None
                raise BrokerError(f"broker '{self.profile}' ended at once with code {code}")
            if listen.exists() and self._try_port(listen):
                return
            time.sleep(0.02)
        self.kill()
        raise BrokerError(f"broker '{self.profile}' was not ready after {READY_SECONDS} s")

    def _try_port(self, listen):
        try:
            self.port = chosen_port(listen.read_text())
        except json.JSONDecodeError:  # still being written
            return False
        except (KeyError, IndexError, TypeError) as e:
            self.kill()
            raise BrokerError(f"listen.json has another form: {e!r}") from e
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """SIGTERM; returns None when the broker ended with code 0, else a text saying what happened."""
        if self.process is None:
            return None
        process, self.process = self.process, None
        if process.poll() is not None:
            return f"broker '{self.profile}' had ended by itself with code {process.returncode}"
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"broker '{self.profile}' did not end within {STOP_SECONDS} s of SIGTERM"
        return None if code == 0 else f"broker '{self.profile}' ended with code {code} after SIGTERM"

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def log_tail(self, lines=25):
        text = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join(f"    | {line}" for line in text[-lines:]) or "    | (the log is empty)"
