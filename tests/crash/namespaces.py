"""Namespaces made, used and dropped while the broker is killed: each is there as a whole, or not at all."""

import asyncio
import base64
import hashlib
import hmac
import json
import random
import threading
import time
import urllib.parse

import http.client

from .broker import Broker

NAMES = [f"n{i}" for i in range(6)]
QUEUES = [f"q{i}" for i in range(4)]
DESCRIPTION = ('<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml"><QueueDescription/></content>'
               "</entry>")


class Http:
    """One connection; `host` chooses the namespace."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

    def ask(self, method, path, host="localhost", body=None, headers=None):
        scope, until = urllib.parse.quote_plus(f"http://{host}"), int(time.time()) + 600
        sign = hmac.new(b"SAS_KEY_VALUE", f"{scope}\n{until}".encode(), hashlib.sha256).digest()
        token = (f"SharedAccessSignature sr={scope}&sig={urllib.parse.quote_plus(base64.b64encode(sign))}&se={until}"
                 "&skn=RootManageSharedAccessKey")
        self.connection.request(method, path, body, {"Authorization": token, "Host": host, **(headers or {})})
        answer = self.connection.getresponse()
        self.answer_headers = answer.headers
        return answer.status, answer.read().decode()


class World:
    """What may be: a namespace is known to be there, known not to be, or was asked about without an answer."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.there = {name: {False} for name in NAMES}
        self.queues = {name: {queue: {False} for queue in QUEUES} for name in NAMES}
        self.answers = 0
        self.troubles = []

    def live(self, port):
        """Until the broker is gone."""
        try:
            http_client = Http(port)
            while True:
                self.step(http_client, self.random.choice(NAMES))
        except (OSError, http.client.HTTPException):
            pass

    def step(self, client, name):
        there, queues = self.there[name], self.queues[name]
        act = self.random.random()
        if True not in there:
            self.there[name] = {True, False}
            status, _ = client.ask("PUT", f"/$omnibus/namespaces/{name}")
            self.expect(status, 201, f"making {name}")
            self.there[name] = {True}
        elif act < 0.25:
            self.there[name] = {True, False}
            self.queues[name] = {queue: states | {False} for queue, states in queues.items()}
            status, _ = client.ask("DELETE", f"/$omnibus/namespaces/{name}")
            self.expect(status, 200, f"dropping {name}")
            self.there[name] = {False}
            self.queues[name] = {queue: {False} for queue in QUEUES}
        else:
            queue = self.random.choice(QUEUES)
            if True in queues[queue]:
                return
            queues[queue] = {True, False}
            status, _ = client.ask("PUT", f"/{queue}", f"{name}.localhost", DESCRIPTION)
            self.expect(status, 201, f"making {queue} in {name}")
            queues[queue] = {True}
        self.answers += 1

    def expect(self, status, wanted, what):
        if status != wanted:
            self.troubles.append(f"{what}: status {status}")

    def look(self, port):
        client = Http(port)
        _, text = client.ask("GET", "/$omnibus/namespaces")
        listed = {one["Name"] for one in json.loads(text)["value"]}
        if listed - set(NAMES) != {"sbemulatorns"}:
            self.troubles.append(f"namespaces that nobody made: {listed}")
        _, text = client.ask("GET", "/$Resources/Queues")
        if "<entry" in text:
            self.troubles.append("a queue of a namespace is in the default one")
        for name in NAMES:
            is_there = name in listed
            if is_there not in self.there[name]:
                self.troubles.append(f"{name} is {'there' if is_there else 'gone'}, which was not said")
            self.there[name] = {is_there}
            for queue in QUEUES:
                _, text = client.ask("GET", f"/{queue}", f"{name}.localhost") if is_there else (404, "")
                has_queue = "<QueueDescription" in text
                if is_there and has_queue not in self.queues[name][queue]:
                    self.troubles.append(f"{queue} of {name} is {'there' if has_queue else 'gone'}, which was not said")
                self.queues[name][queue] = {has_queue}

    def take_troubles(self):
        troubles, self.troubles = self.troubles, []
        return troubles


async def kills(arguments, verdicts, folder):
    world = World(arguments.seed)
    broker = Broker(arguments.binary, folder, {}, settings={"Shards": 2})
    try:
        for number in range(1, arguments.kills + 1):
            await broker.start()
            world.look(broker.port)
            verdicts.say(f"namespaces before kill {number}", world.take_troubles())
            worker = threading.Thread(target=world.live, args=(broker.port,))
            worker.start()
            await asyncio.sleep(world.random.random() * min(arguments.seconds_each, 0.5))
            broker.kill()
            worker.join()
            if number % 5 == 0:
                await broker.cut_start_short(world.random.random() * 0.2)
            verdicts.say(f"namespaces, kill {number}", world.take_troubles(), f"{world.answers} answers")
            if verdicts.failed:
                return
        await broker.start()
        world.look(broker.port)
        await broker.stop()
        text = broker.log()
        troubles = world.take_troubles() + [line for line in text.splitlines() if "that nobody knows" in line]
        verdicts.say("namespaces at the end", troubles, f"{world.answers} answers")
    finally:
        broker.kill()
