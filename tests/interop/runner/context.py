"""What a client program is told: one JSON file with addresses, strings and tokens.

Client programs compute nothing themselves, so that all of them try the same thing.
"""

import json
import pathlib
import shutil
import subprocess

from . import scenarios as plan
from . import tokens

TRUSTSTORE_PASSWORD = "changeit"
SAMPLE = pathlib.Path(__file__).resolve().with_name("emulator_config.json")
QUEUE, TOPIC, SUBSCRIPTION = "no-such-queue", "no-such-topic", "no-such-subscription"


class Material:
    """Keys and certificates made once per run, some of them before any broker starts."""

    def __init__(self, folder):
        self.rsa = tokens.RsaKey(folder)
        self.jwks_path = folder / "jwks.json"
        self.jwks_path.write_text(json.dumps(self.rsa.jwks()))
        self.client_ca, self.client_cert, self.client_key = tokens.client_certificate(folder, "interop-client")
        self.client_subject = "CN=interop-client"
        self.issuer, self.audience = tokens.JWT_ISSUER, tokens.JWT_AUDIENCE
        self.jwt_secret = tokens.JWT_SECRET.decode()
        other = folder / "other"
        other.mkdir()
        self.untrusted_ca = tokens.client_certificate(other, "stranger")[0]


def write(path, client, brokers, material, trusted, scenarios, **more):
    mine = [s for s in scenarios if plan.profile(s) == "queues"]
    context = {
        "client": client, "scenarios": scenarios,
        "queues": {s: plan.queue_of(client, s) for s in mine},
        "destinations": {s: plan.destination_of(client, s) for s in mine if plan.forwards(s)},
        "partners": {s: plan.partner_of(client, s) for s in mine if plan.has_partner(s)},
        "sources": {s: plan.source_of(client, s) for s in mine if s in plan.topics.SOURCES},
        "together": mine if client in plan.PATIENT else [],
        "lock_seconds": plan.LOCK_SECONDS,
        "queue": QUEUE, "topic": TOPIC, "subscription": SUBSCRIPTION,
        "rule": tokens.RULE, "key": tokens.KEY,
        "counted": {"queue": plan.COUNTED, "counts": plan.COUNTS},
        "brokers": {name: _broker(broker) for name, broker in brokers.items()},
        "jwt": {
            "hs256": tokens.jwt_hs256(tokens.claims()),
            "rs256": material.rsa.jwt(tokens.claims()),
            "bad-signature": tokens.jwt_hs256(tokens.claims(), b"another secret, another secret, ..."),
            "expired": tokens.jwt_hs256(tokens.claims(-3600)),
            "other-audience": tokens.jwt_hs256(tokens.claims(audience="https://elsewhere.example")),
            "send-only": tokens.jwt_hs256(tokens.claims(roles=["Send"])),
            "listen-only": tokens.jwt_hs256(tokens.claims(roles=["Listen"])),
        },
        "ca_bundle": str(trusted[0]), "truststore": str(trusted[1]), "truststore_password": TRUSTSTORE_PASSWORD,
        "client_certificate": str(material.client_cert),
        "client_key": str(material.client_key),
        "untrusted_ca": str(material.untrusted_ca),
        "sample": str(SAMPLE), **more,
    }
    path.write_text(json.dumps(context, indent=1))


def emulator_string(broker):
    return (f"Endpoint=sb://localhost:{broker.port};SharedAccessKeyName={tokens.RULE};SharedAccessKey={tokens.KEY};"
            "UseDevelopmentEmulator=true;")


def _broker(broker):
    """`host` is in the certificate; the strings without UseDevelopmentEmulator mean TLS."""
    host, port = "localhost", broker.port
    endpoint = f"Endpoint=sb://{host}:{port};"
    emulator = "UseDevelopmentEmulator=true;"
    named = f"SharedAccessKeyName={tokens.RULE};SharedAccessKey="
    # SDKs put the port into the audience or leave it out; the broker strips it (contract 2.6).
    namespace, entity = f"sb://{host}/", f"sb://{host}/{QUEUE}"

    def ready(token):
        return f"{endpoint}SharedAccessSignature={token};{emulator}"

    return {
        "host": host, "port": port, "pid": broker.process.pid,
        "ca": str(broker.ca),
        "emulator": emulator_string(broker),
        "tls": f"{endpoint}{named}{tokens.KEY};",
        "tls_without_port": f"Endpoint=sb://{host};{named}{tokens.KEY};",
        "wrong_key": f"{endpoint}{named}not-the-key;{emulator}",
        "admin_wrong_key": f"{endpoint}{named}not-the-key;",
        "admin_send_only": f"{endpoint}SharedAccessKeyName=SendOnly;SharedAccessKey=send-only-key;",
        "wrong_rule": f"{endpoint}SharedAccessKeyName=NoSuchRule;SharedAccessKey={tokens.KEY};{emulator}",
        "sas_namespace": ready(tokens.sas(namespace)),
        "sas_entity": ready(tokens.sas(entity)),
        "sas_expired": ready(tokens.sas(namespace, seconds=-3600)),
        "sas_other_entity": ready(tokens.sas(f"sb://{host}/another-queue")),
        "sas_malformed": ready("SharedAccessSignature sr=nonsense&sig=%25%25&se=4102444800"),
        "tokens": {
            "namespace": tokens.sas(namespace), "entity": tokens.sas(entity),
            "other": tokens.sas(f"sb://{host}/another-queue"),
            "bad_signature": tokens.sas(namespace, key="not-the-key"),
            "expired": tokens.sas(namespace, seconds=-3600),
            "send_only": tokens.sas(namespace, rule="SendOnly", key="send-only-key"),
            "listen_only": tokens.sas(namespace, rule="ListenOnly", key="listen-only-key"),
        },
    }


def trust(folder, brokers):
    """The CAs of the brokers clients must trust, as PEM bundle and as Java trust store.

    The broker "restart" is left out: connect-tls/untrusted needs one that nobody trusts.
    """
    bundle, store = folder / "ca-bundle.pem", folder / "truststore.p12"
    trusted = [b.ca for name, b in brokers.items() if name != "restart" and b.ca.exists()]
    bundle.write_text("".join(ca.read_text() for ca in trusted))
    store.unlink(missing_ok=True)
    if shutil.which("keytool"):
        for number, ca in enumerate(trusted):
            subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", f"ca{number}", "-file", str(ca),
                            "-keystore", str(store), "-storepass", TRUSTSTORE_PASSWORD, "-storetype", "PKCS12"],
                           capture_output=True, check=True)
    return bundle, store
