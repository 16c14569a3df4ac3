"""The clients of tests/interop: what they are, in which version, and how much each runs."""

import json
import pathlib
import re

from runner import scenarios

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "interop" / "clients"


def _pinned(file, name):
    return re.search(rf"^{re.escape(name)}==(\S+)$", (FOLDER / "python" / file).read_text(), re.MULTILINE)[1]


def _node(name):
    return json.loads((FOLDER / "js" / "package.json").read_text())["dependencies"][name]


def _go(name):
    return re.search(rf"^\s*{re.escape(name)} v(\S+)$", (FOLDER / "go" / "go.mod").read_text(), re.MULTILINE)[1]


def _java(name):
    text = (FOLDER / "java" / "pom.xml").read_text()
    return re.search(rf"<artifactId>{re.escape(name)}</artifactId>\s*<version>([^<]+)<", text)[1]


WHAT = {
    "js": ("@azure/service-bus (JavaScript)", lambda: _node("@azure/service-bus")),
    "python": ("azure-servicebus (Python)", lambda: _pinned("requirements.txt", "azure-servicebus")),
    "python-7.14": ("azure-servicebus (Python)", lambda: _pinned("requirements-7.14.txt", "azure-servicebus")),
    "go": ("azservicebus (Go)", lambda: _go("github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus")),
    "java": ("azure-messaging-servicebus (Java)", lambda: _java("azure-messaging-servicebus")),
    "emulator": ("azure-servicebus (Python), where the emulator would be",
                 lambda: _pinned("requirements.txt", "azure-servicebus")),
    "rhea": ("rhea (JavaScript, plain AMQP)", lambda: _node("rhea")),
    "proton-python": ("Qpid Proton (Python, plain AMQP)", lambda: _pinned("requirements-proton.txt", "python-qpid-proton")),
    "proton-cpp": ("Qpid Proton (C++, plain AMQP)", lambda: "of the system: 0.37 in Debian 12"),
    "raw": ("frames written by hand", lambda: "of this tree"),
}


def all_clients():
    """(name, version, number of scenarios), one for each client."""
    for client, wanted in scenarios.CLIENTS.items():
        name, version = WHAT[client]
        yield f"`{client}`: {name}", version(), len(wanted)
