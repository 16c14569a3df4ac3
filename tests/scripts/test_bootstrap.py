"""scripts/bootstrap against pretended machines: its own dpkg, apt, sudo and id come first in PATH."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BOOTSTRAP = Path(__file__).resolve().parents[2] / "scripts/bootstrap"
TOOLS = ["bash", "env", "dirname", "grep", "mkdir", "tail", "cat"]


class Bootstrap(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        self.bin = self.home / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        # The script works in the tree it stands in, so the pretended machine has its own.
        (self.home / "scripts").mkdir()
        shutil.copy(BOOTSTRAP, self.home / "scripts/bootstrap")
        self.calls = self.home / "calls"
        self.tool("id", "echo 0")
        self.tool("apt-get", f'echo "apt-get $*" >> {self.calls}')

    def tool(self, name, body):
        file = self.bin / name
        file.unlink(missing_ok=True)
        file.write_text(f"#!{self.bin}/bash\n{body}\n")
        file.chmod(0o755)

    def installed(self, *names):
        known = " ".join(names)
        self.tool("dpkg-query", f'for n in "${{@:4}}"; do [[ " {known} " != *" $n "* ]] || echo "installed $n"; done; exit 1')

    def run_it(self, *groups):
        return subprocess.run(
            [self.home / "scripts/bootstrap", *groups], env={"PATH": str(self.bin)}, capture_output=True, text=True
        )

    def called(self):
        return self.calls.read_text().splitlines() if self.calls.exists() else []

    def test_with_everything_there_it_is_silent_and_calls_no_apt(self):
        self.installed("clang-format-19", "clang-tidy-19")
        done = self.run_it("lint")
        self.assertEqual((done.returncode, done.stdout, done.stderr, self.called()), (0, "", "", []))

    def test_only_what_is_missing_is_installed_and_said_in_one_line(self):
        self.installed("clang-format-19")
        done = self.run_it("lint")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "bootstrap: installing for 'lint' what is not here yet: clang-tidy-19\n")
        self.assertEqual(
            self.called(), ["apt-get -q -y update", "apt-get -q -y install --no-install-recommends clang-tidy-19"]
        )

    def test_a_removed_package_whose_settings_stay_counts_as_missing(self):
        self.tool("dpkg-query", 'for n in "${@:4}"; do echo "config-files $n"; done')
        self.assertIn("clang-tidy-19", self.run_it("lint").stdout)

    def test_a_package_of_two_groups_is_named_once(self):
        self.installed()
        self.assertEqual(self.run_it("bench", "interop").stdout.count("libqpid-proton11-dev"), 1)

    def test_a_user_goes_through_sudo(self):
        self.installed()
        self.tool("id", "echo 1000")
        self.tool("sudo", f'echo sudo >> {self.calls}; exec "$@"')
        self.assertEqual(self.run_it("lint").returncode, 0)
        self.assertEqual(self.called()[0], "sudo")

    def fails_in_one_line(self, *groups):
        done = self.run_it(*groups)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_without_rights_it_says_so_in_one_line(self):
        self.installed()
        self.tool("id", "echo 1000")
        self.assertIn("not root and no sudo; as root: apt-get install clang-format-19", self.fails_in_one_line("lint"))

    def test_without_apt_it_says_so_in_one_line(self):
        (self.bin / "apt-get").unlink()
        self.installed()
        self.assertIn("not a Debian system", self.fails_in_one_line("lint"))

    def test_without_network_it_gives_the_reason_of_apt_in_one_line(self):
        self.installed()
        self.tool("apt-get", 'echo Reading; echo "E: Unable to locate package $7" >&2; exit 100')
        self.assertIn("E: Unable to locate package", self.fails_in_one_line("lint"))

    def test_an_unknown_group_is_refused(self):
        self.installed()
        self.assertIn("no group 'tests'", self.fails_in_one_line("tests"))
        self.assertEqual(self.called(), [])


if __name__ == "__main__":
    unittest.main()
