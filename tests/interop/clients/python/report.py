"""The frame of a Python client: runs the wanted scenarios one by one and reports each on stdout.

A scenario is a function. It passes when it returns (its value is the detail), fails when it raises,
and is skipped when it raises Skip. Library logs go to stderr, stdout belongs to the verdicts.
"""

import concurrent.futures
import json
import os
import sys
import threading
import traceback


AT_A_TIME = 4


class Skip(Exception):
    pass


with open(sys.argv[1], encoding="utf-8") as _file:
    context = json.load(_file)


def ask(verb, broker):
    """Asks the runner to stop or start a broker and waits until it has done so."""
    print(json.dumps({"ask": verb, "broker": broker}), flush=True)
    sys.stdin.readline()


def check(condition, text):
    if not condition:
        raise AssertionError(text)


REGISTERED = {}


def scenario(name):
    """Registers the function below it for run(REGISTERED)."""
    def register(function):
        check(name not in REGISTERED, f"two scenarios are called {name}")
        REGISTERED[name] = function
        return function
    return register


def run(scenarios, seconds=25):
    """Runs the scenarios one by one, and those that disturb nobody several at a time after that."""
    together = set(context["together"])
    for name in context["scenarios"]:
        if name not in together:
            _judge(name, scenarios.get(name), seconds)
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for name in context["scenarios"]:
            if name in together:
                pool.submit(_judge, name, scenarios.get(name), seconds)
    os._exit(0)  # threads of scenarios that never returned must not keep the process


def _judge(name, scenario, seconds):
    verdict = {"scenario": name, "ok": False, "detail": "this client does not know the scenario"}
    if scenario:
        # In a thread, so that a call that never returns costs this scenario only.
        worker = threading.Thread(target=_one, args=(scenario, verdict), daemon=True)
        verdict["detail"] = f"the scenario took longer than {seconds} s"
        worker.start()
        worker.join(seconds)
    print(json.dumps(dict(verdict)) + "\n", end="", flush=True)


def _one(scenario, verdict):
    try:
        detail = scenario()
        verdict.update(ok=True, detail=str(detail or ""))
    except Skip as e:
        verdict.update(skip=True, detail=str(e))
    except BaseException as e:  # pylint: disable=broad-except
        traceback.print_exc()
        verdict["detail"] = f"{type(e).__name__}: {e}"
