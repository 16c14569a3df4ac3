"""What a person at a terminal sees: progress, the screen of `top`, questions, and what Ctrl-C does."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
import unittest

from test_client import BINARY, ClientTest
from test_serve import PATIENCE


class Terminal:
    """A verb whose stdin, stdout and stderr are a terminal."""

    def __init__(self, *arguments, environment):
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen([BINARY, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.seen = ""

    def until(self, pattern):
        """Reads until it was shown; everything so far."""
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.seen):
            if not self.read(deadline):
                raise AssertionError(f"'{pattern}' was not shown: {self.seen!r}")
        return self.seen

    def read(self, deadline):
        ready, _, _ = select.select([self.ours], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            part = os.read(self.ours, 65536)
        except OSError:  # so a terminal says that the other side is gone
            return False
        self.seen += part.decode(errors="replace")
        return bool(part)

    def type(self, text):
        os.write(self.ours, text.encode())

    def end(self):
        """All that was shown, and the exit code."""
        while self.read(time.monotonic() + PATIENCE):
            pass
        code = self.process.wait(PATIENCE)
        os.close(self.ours)
        return self.seen, code


class AtATerminal(ClientTest):
    def at_terminal(self, *arguments):
        terminal = Terminal(*arguments, environment=self.environment())
        self.addCleanup(lambda: terminal.process.poll() is None and terminal.process.kill())
        return terminal

    def received(self, queue):
        """How many messages the broker says it was sent."""
        status, text = self.ask("GET", "/metrics")
        self.assertEqual(status, 200)
        found = re.search(rf'^omnibus_messages_received_total{{[^}}]*entity="{queue}"[^}}]*}} (\d+)', text.decode(), re.MULTILINE)
        return int(found[1]) if found else 0

    def test_progress_is_shown_and_wiped(self):
        self.good("queue", "create", "many")
        send = self.at_terminal("send", "many", "x", "--count", "200000")
        send.until(r"\[#+\.*\] \d+/200000 \(\d+/s\)")
        seen, code = send.end()
        self.assertEqual(code, 0, seen[-200:])
        self.assertRegex(seen, r"\r\x1b\[K200000 accepted\r\n$")
        purge = self.at_terminal("purge", "many", "--yes")
        seen, code = purge.end()
        self.assertEqual(code, 0)
        self.assertIn("200000 gone", seen)

    def test_a_question_is_asked_and_the_answer_heard(self):
        self.good("queue", "create", "asked")
        self.good("send", "asked", "x", "--count", "2")
        for answer, code, left in (("\n", 2, 2), ("no\n", 2, 2), ("y\n", 0, 0)):
            purge = self.at_terminal("purge", "asked")
            purge.until(r"All messages of 'asked' will be gone for good\. \[y/N\] ")
            purge.type(answer)
            self.assertEqual(purge.end()[1], code)
            self.assertEqual(self.active("asked"), left)

    def test_the_screen_of_top_is_drawn_again_and_again(self):
        self.good("queue", "create", "shown")
        top = self.at_terminal("top", "--interval", "0.2")
        top.until(r"\x1b\[2J\x1b\[HNAME +KIND[^\x1b]*shown +queue +0 ")
        self.good("send", "shown", "x", "--count", "3")
        top.until(r"shown +queue +3 ")
        top.type("\x03")
        seen, code = top.end()
        self.assertEqual(code, 0)
        self.assertGreater(seen.count("\x1b[2J"), 1)

    def test_ctrl_c_before_the_work_is_done_is_130(self):
        self.good("queue", "create", "half")
        send = self.at_terminal("send", "half", "x", "--count", "100000000")
        send.until(r"/100000000 ")
        send.type("\x03")
        seen, code = send.end()
        self.assertEqual(code, 130, seen[-200:])
        # What it says was accepted is there, and nothing else.
        self.assertEqual(self.active("half"), int(re.search(r"(\d+) accepted", seen)[1]))

    def test_sigint_without_a_terminal_is_130_too(self):
        self.good("queue", "create", "none")
        send = self.start("send", "none", "x", "--count", "100000000", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while self.active("none") == 0 and time.monotonic() < until:
            time.sleep(0.05)
        send.send_signal(signal.SIGINT)
        self.assertEqual(send.wait(PATIENCE), 130)

    def test_bench_is_stopped_with_the_figures_it_has(self):
        self.good("queue", "create", "load")
        bench = self.at_terminal("bench", "load", "--duration", "600", "--senders", "2", "--receivers", "2")
        bench.until(r"accepted: [1-9]\d* ")
        bench.type("\x03")
        seen, code = bench.end()
        self.assertEqual(code, 130, seen[-300:])
        accepted, received = (int(re.search(rf"^{word} +(\d+) ", seen, re.MULTILINE)[1]) for word in ("accepted", "received"))
        self.assertGreater(accepted, 0)
        self.assertEqual(received, accepted, "what was on its way is waited for")
        self.assertEqual(self.active("load"), 0)

    def test_bench_is_stopped_by_a_signal_while_it_waits_for_outcomes(self):
        # A window of one: a sender nearly always waits. Rounds, for the moment of a signal is chance.
        self.good("queue", "create", "slow")
        for _ in range(5):
            before = self.received("slow")
            bench = self.start("bench", "slow", "--duration", "600", "--window", "1", "--json", stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
            until = time.monotonic() + PATIENCE
            while self.received("slow") == before and time.monotonic() < until:
                time.sleep(0.01)
            bench.send_signal(signal.SIGINT)
            out, said = bench.communicate(timeout=PATIENCE)
            self.assertEqual(bench.returncode, 130, said)
            figures = json.loads(out)
            self.assertGreater(figures["accepted"], 0)
            self.assertEqual(figures["received"], figures["accepted"])


if __name__ == "__main__":
    unittest.main()
