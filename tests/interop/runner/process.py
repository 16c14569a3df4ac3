"""Runs one client program and collects its verdicts.

The program gets the path of the context file as its argument and writes JSON lines on stdout:
  {"scenario": "...", "ok": true, "detail": "..."}     a verdict; "skip": true with a reason is the third kind
  {"ask": "stop" | "start", "broker": "restart"}       the runner does it and answers with a line `done` on stdin
Everything else the program prints (and its stderr) goes to its log.
"""

import json
import os
import queue
import subprocess
import threading
import time


def run(command, environment, context, log_path, seconds, on_ask, on_verdict):
    """Returns None, or a text saying how the program ended badly."""
    with open(log_path, "wb") as log:
        process = subprocess.Popen([*command, str(context)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=log, env={**os.environ, **environment})
        lines = queue.Queue()

        def read():
            for line in process.stdout:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        deadline = time.monotonic() + seconds
        trouble = None
        try:
            while True:
                try:
                    line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    trouble = f"was not finished after {seconds} s"
                    break
                if line is None:
                    break
                log.write(line)
                log.flush()
                message = _parse(line)
                if "ask" in message:
                    on_ask(message)
                    process.stdin.write(b"done\n")
                    process.stdin.flush()
                elif "scenario" in message:
                    on_verdict(message)
        finally:
            if trouble:
                process.kill()
            try:
                code = process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
                trouble = trouble or "did not exit after its last line"
        if trouble is None and code != 0:
            trouble = f"ended with code {code}"
        return trouble


def _parse(line):
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
