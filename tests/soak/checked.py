"""Two queues whose clients write down all they do, at a pace that a checker can follow for hours.

The load around them is too much to be kept; what is lost, doubled or out of order there may be lost here as well, where it
is seen.
"""

import json
import subprocess

from chaos import final, merge, scene
from chaos.clients.history import History
from chaos.fleet import Fleet

WHO = "soak"
PLAIN, PARTED = "checked", "checked-parted"
PLACES = (PLAIN, PARTED)
RATE = 2
# As in chaos: clocks have milliseconds, and a client that waits for its turn on a busy machine is late.
SLACK_MS = 2000
LATE_MS = 14000
CHECKER_SECONDS = 900


def config_queues():
    more = {PARTED: {"EnablePartitioning": True}}
    return [{"Name": name, "Properties": {**scene.COMMON, **more.get(name, {})}} for name in PLACES]


def roles():
    sends = [scene.send(PLAIN, RATE, later=0.05, mortal=0.05), scene.send(PARTED, RATE, keys=20), scene.send(PARTED, RATE)]
    receives = [scene.receive(name, **how) for name in PLACES for how in ({}, {}, {"dead": True})]
    return {"checked-senders": ("python", sends), "checked-receivers": ("python", receives)}


class Checked:
    def __init__(self, checker, folder):
        self.checker, self.folder = checker, folder
        folder.mkdir()
        self.fleet, self.history = Fleet(folder), History(folder / f"{WHO}.jsonl")
        for name in PLACES:
            self.history.say(WHO, "entity", name=name, lock=scene.LOCK_SECONDS * 1_000_000)

    def fault(self, what, note):
        self.history.say(WHO, "fault", what=what, note=note)

    async def look(self, port):
        """When nobody works any more: what is left."""
        return await final.write(port, PLACES, self.history, WHO)

    def judge(self, log):
        """(what is wrong, in a word what was looked at), by the logs of the clients and of the broker."""
        try:
            events = merge.merged(merge.read(self.folder, self.fleet.killed()), log)
        except merge.Broken as e:
            return [str(e)], ""
        told = trouble_of(events)
        if told:
            return told, ""
        judged = self.folder / "judged"
        judged.mkdir()
        history = judged / "history.jsonl"
        history.write_text("".join(json.dumps(event) + "\n" for event in events))
        command = [self.checker, str(history), "--slack-ms", str(SLACK_MS), "--late-ms", str(LATE_MS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECKER_SECONDS, check=False)
        lines = (done.stdout + done.stderr).splitlines()
        if done.returncode:
            return [*(lines or [f"it ended with code {done.returncode}"]), f"again: {' '.join(command)}"], ""
        return [], lines[-1] if lines else ""


def trouble_of(events):
    """A history in which nothing happened proves nothing."""
    accepted = sum(event["do"] == "sent" and event.get("result") == "accepted" for event in events)
    taken = sum(event["do"] == "settled" and event.get("result") == "accepted" for event in events)
    looked = {event["from"] for event in events if event["do"] == "left"}
    troubles = [] if accepted and taken else [f"{accepted} messages were accepted, {taken} settled"]
    return troubles + [f"nobody looked into '{place}' at the end" for place in PLACES if place not in looked]
