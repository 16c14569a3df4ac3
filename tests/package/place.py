"""Where a package is installed: here, or in a fresh minimal Debian made for the occasion.

A fresh root is debootstrap's, of the release and from the mirror that this machine's apt uses; its apt is set up as
ours is (sources, proxy). It lives in a mount and a process namespace of its own: whatever way the test ends, no mount
is left on this machine, and no process of the root.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

# Where dpkg, apt, the linker and adduser keep their own books: what they wrote about a package is not the package's.
BOOKS = ("/proc", "/sys", "/dev", "/tmp", "/run", "/var/lib/dpkg", "/var/lib/apt", "/var/cache/apt",
         "/var/cache/debconf", "/var/cache/ldconfig", "/var/log/apt", "/etc/passwd-", "/etc/group-", "/etc/shadow-",
         "/etc/gshadow-")


class Unmade(Exception):
    """The fresh root could not be made; says why."""


class Here:
    fresh = False

    def command(self, *arguments):
        return list(arguments)

    def path(self, *parts):
        return pathlib.Path(*parts)

    def bring(self, file):
        """The path, in this place, of a file of ours."""
        return str(file)

    def users(self):
        """Names by number, those of /etc/passwd alone: it is where a package makes its user."""
        rows = [line.split(":") for line in self.path("/etc/passwd").read_text().splitlines()]
        return {int(row[2]): row[0] for row in rows}


class FreshRoot(Here):
    fresh = True

    def __init__(self, folder):
        """Makes the root below a folder; only in the namespaces of with_fresh_root()."""
        # The folder itself is for nobody but us; the root in it is for all its users.
        self.folder = folder / "root"
        self.folder.mkdir(mode=0o755)
        if os.getpid() != 1:
            raise Unmade("not in a process namespace of its own")
        if shutil.which("debootstrap") is None:
            raise Unmade("no debootstrap here (apt-get install debootstrap)")
        sources = apt_sources()
        if not sources:
            raise Unmade("apt knows no Debian mirror (apt-get update)")
        uri, self.release, _ = sources[0]
        settings = apt_settings()
        variables = {f"{protocol}_proxy": value for protocol in ("http", "https")
                     if (value := settings.get(f"Acquire::{protocol}::Proxy"))}
        secure = any(uri.startswith("https:") for uri, _, _ in sources)
        made(["debootstrap", "--variant=minbase", *(["--include=ca-certificates"] if secure else []), self.release,
              str(self.folder), uri], env={**os.environ, **variables})
        for name in ("resolv.conf", "hosts"):
            shutil.copyfile(pathlib.Path("/etc") / name, self.path("/etc", name))
        self.path("/etc/apt/sources.list").write_text("".join(f"deb {' '.join(source)}\n" for source in sources))
        self.path("/etc/apt/apt.conf.d/90-as-outside").write_text(
            "".join(f'{name} "{value}";\n' for name, value in settings.items()))
        made(["mount", "-t", "proc", "proc", str(self.path("/proc"))])
        made(["mount", "--rbind", "/sys", str(self.path("/sys"))])  # systemd-analyze asks for control groups
        made(self.command("apt-get", "-q", "update"))

    def command(self, *arguments):
        # Nothing of our own environment: it tells of folders out here.
        return ["chroot", str(self.folder), "/usr/bin/env", "-i", "HOME=/root", "LANG=C.UTF-8",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *arguments]

    def path(self, *parts):
        return self.folder / pathlib.Path(*parts).relative_to("/")

    def bring(self, file):
        shutil.copyfile(file, self.path("/tmp", file.name))
        return f"/tmp/{file.name}"

    def package_count(self):
        return len(made(self.command("dpkg-query", "-W")).splitlines())

    def files(self):
        """Every file and folder there is, except for the books of dpkg and the like."""
        found = set()
        for folder, folders, names in os.walk(self.folder):
            inside = "/" + str(pathlib.Path(folder).relative_to(self.folder)).removeprefix(".")
            folders[:] = [name for name in folders if os.path.join(inside, name) not in BOOKS]
            found.update(os.path.join(inside, name) for name in (*folders, *names))
        return found.difference(BOOKS)


def made(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise Unmade(f"{command[0]}: {done.returncode}\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def apt_sources():
    """(address, release, component) of each Debian source that apt uses, the release itself first."""
    rows = made(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)",
                 "Created-By: Packages"]).splitlines()
    sources = [tuple(row.split()[:3]) for row in rows if row.split()[-1] == "Debian"]
    return sorted(set(sources), key=lambda source: ("-" in source[1], sources.index(source)))


def apt_settings():
    """How apt reaches its sources: what goes from our apt to that of the root."""
    rows = [line.partition(" ") for line in made(["apt-config", "dump"]).splitlines()]
    return {name: value.strip('";') for name, _, value in rows
            if name.startswith(("Acquire::http::", "Acquire::https::", "Acquire::Check-")) and value != '"";'}


def with_fresh_root(command):
    """Runs command(folder) in namespaces of its own, then removes the folder; returns how the command ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="omnibus-root-", dir="/var/tmp")
    inside = None
    try:
        inside = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "--pid", "--fork",
                                   "--kill-child", "--mount-proc", *command(folder)])
        return inside.wait()
    finally:
        if inside and inside.poll() is None:
            inside.kill()  # and with it all that is in there: --kill-child
            inside.wait()
        # The root's own mounts were never to be seen out here: this removes what debootstrap unpacked, no more.
        shutil.rmtree(folder)
