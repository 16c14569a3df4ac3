"""Prepares each client: installs its libraries once into build/interop and says how to start it.

What was installed is keyed by the hash of the files that pin it, so a second run installs nothing
and needs no network. A missing tool raises Missing, which becomes a loud SKIP; a failing install is
an error, not a skip.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess

CLIENTS = pathlib.Path(__file__).resolve().parent.parent / "clients"
INSTALL_SECONDS = 600


class Missing(Exception):
    pass


class Failed(Exception):
    pass


class Toolchains:
    def __init__(self, cache):
        self.cache = cache
        cache.mkdir(parents=True, exist_ok=True)

    def prepare(self, client):
        """Returns (command, extra environment) of the client's program."""
        return {
            "js": lambda: self._node("js", "servicebus.js"),
            "rhea": lambda: self._node("js", "plain.js"),
            "python": lambda: self._python("requirements.txt", "servicebus.py"),
            "python-7.14": lambda: self._python("requirements-7.14.txt", "servicebus.py"),
            "emulator": self._emulator,
            "proton-python": self._proton_python,
            "go": lambda: self.go(sorted((CLIENTS / "go").glob("*.go"))),
            "java": lambda: self.java(sorted((CLIENTS / "java" / "src").glob("*.java")), "interop.Main"),
            "proton-cpp": self._proton_cpp,
            "raw": lambda: (["python3", str(CLIENTS / "raw" / "main.py")], {}),
        }[client]()

    def _node(self, folder, program):
        _need("node", "npm")
        source = CLIENTS / folder
        pins = [source / "package.json", source / "package-lock.json"]

        def install(target):
            for pin in pins:
                shutil.copy(pin, target)
            _run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], target)

        target = self._once("node", pins, install)
        return ["node", str(source / program)], {"NODE_PATH": str(target / "node_modules")}

    def _python(self, requirements, program):
        venv = self.venv(CLIENTS / "python" / requirements)
        return [str(venv / "bin" / "python"), str(CLIENTS / "python" / program)], {}

    def _emulator(self):
        """In a network of its own where that is allowed, else in everybody's."""
        command, environment = self._python("requirements.txt", "emulator.py")
        if shutil.which("unshare"):
            for alone in (["unshare", "--net", "--map-root-user"], ["unshare", "--net"]):
                if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0:
                    return [*alone, *command], {**environment, "OMNIBUS_OWN_NETWORK": "1"}
        return command, environment

    def venv(self, requirements):
        _need("python3")

        def install(target):
            _run(["python3", "-m", "venv", str(target)], target)
            _run([str(target / "bin" / "pip"), "install", "-q", "-r", str(requirements)], target)

        return self._once("venv", [requirements], install)

    def _proton_python(self):
        program = str(CLIENTS / "python" / "plain.py")
        try:
            python = self.venv(CLIENTS / "python" / "requirements-proton.txt") / "bin" / "python"
        except Failed as e:
            # It has no wheel and needs a C compiler and OpenSSL's headers; a packaged one will do.
            if subprocess.run(["/usr/bin/python3", "-c", "import proton"], capture_output=True,
                              check=False).returncode:
                raise Missing(f"python-qpid-proton does not build here and is not packaged: {e}") from e
            python = "/usr/bin/python3"
        return [str(python), program], {}

    def go(self, sources):
        """A program of these files, wherever they are, with the libraries that the module here names."""
        _need("go")
        source = CLIENTS / "go"

        def install(target):
            _run(["go", "build", "-mod=readonly", "-o", str(target / "client"), *map(str, sources)], source)

        target = self._once("go", sources + [source / "go.mod", source / "go.sum"], install)
        return [str(target / "client")], {}

    def java(self, sources, program):
        """The command of `program`, a class in these sources, with the SDK."""
        _need("java", "javac", "mvn")
        source = CLIENTS / "java"

        def fetch(target):
            _run(["mvn", "-q", "-B", "-f", str(source / "pom.xml"), "dependency:copy-dependencies",
                  f"-DoutputDirectory={target}"], source)

        jars = self._once("jars", [source / "pom.xml"], fetch)

        def install(target):
            _run(["javac", "-Xlint:all,-processing,-classfile,-serial", "-Werror", "-cp", f"{jars}/*", "-d",
                  str(target), *map(str, sources)], source)

        classes = self._once("java", sources + [source / "pom.xml"], install)
        return ["java", "-cp", f"{classes}:{jars}/*", program], {}

    def _proton_cpp(self):
        _need("g++")
        sources = sorted((CLIENTS / "proton_cpp").glob("*.cpp"))
        headers = sorted((CLIENTS / "proton_cpp").glob("*.hpp"))
        probe = subprocess.run(["g++", "-xc++", "-E", "-"], input=b"#include <proton/container.hpp>\n",
                               capture_output=True, check=False)
        if probe.returncode:
            raise Missing("Proton's C++ headers (libqpid-proton-cpp12-dev) are not installed")

        def install(target):
            # Not pkg-config: Debian's libqpid-proton-cpp.pc requires a package that nobody ships.
            _run(["g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", *map(str, sources), "-o",
                  str(target / "client"), "-lqpid-proton-cpp", "-lqpid-proton"], target)

        target = self._once("proton_cpp", sources + headers, install)
        return [str(target / "client")], {}

    def _once(self, kind, pins, install):
        """The folder with the result of `install`, which runs only when a pinning file changed."""
        digest = hashlib.sha256()
        for pin in pins:
            digest.update(pin.name.encode() + b"\0" + pin.read_bytes())
        target = self.cache / f"{kind}-{digest.hexdigest()[:16]}"
        done = target / ".done"
        if not done.exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            install(target)
            done.touch()
        return target


def _need(*tools):
    gone = [tool for tool in tools if shutil.which(tool) is None]
    if gone:
        raise Missing(f"{', '.join(gone)} not found")


def _run(command, folder):
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=INSTALL_SECONDS, check=False,
                              env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    except subprocess.TimeoutExpired as e:
        raise Failed(f"{command[0]} took longer than {INSTALL_SECONDS} s") from e
    if done.returncode:
        tail = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()[-15:]
        raise Failed(f"{' '.join(command[:3])} failed:\n    | " + "\n    | ".join(tail))
