"""Large messages, so many that a full disk is noticed: the broker has room set aside that small ones would not use up.

Goes to the broker directly, with the client of tests/crash, and writes its history as everybody does.
"""

import asyncio
import time

from crash import amqp
from crash.amqp import Connection, Lost, Received, Receiver, Refused, Sender

BODY_BYTES = 900_000
AT_ONCE = 4
# After this condition the message is not there; of others nobody can say.
REFUSED = "com.microsoft:server-busy"
FLOOD_SECONDS = 12
DRAIN_SECONDS = 30
LIVES = (Lost, OSError, asyncio.TimeoutError)


class Flood:
    def __init__(self, queues, history):
        self.queues, self.history = queues, history
        self.number = self.refused = 0

    async def rise(self, port):
        """Sends to each queue until it is refused, or its connection ends."""
        await asyncio.gather(*(self._send(port, queue) for queue in self.queues))

    async def _send(self, port, queue):
        who, until = f"flood-{queue}", time.monotonic() + FLOOD_SECONDS
        waiting = []
        try:
            connection = await Connection.open(port)
        except Lost:
            return
        try:
            link = Sender(connection, queue)
            refused = False
            while time.monotonic() < until and not refused:
                await asyncio.wait_for(link.ready(), 5)
                self.number += 1
                id_ = f"{who}.{self.number}"
                self.history.say(who, "send", id=id_, to=queue)
                waiting.append((id_, link.post(amqp.message(id_, f"{id_} ".encode().ljust(BODY_BYTES, b"x")))))
                while waiting and (len(waiting) >= AT_ONCE or waiting[0][1].done()):
                    refused = not await self._answered(who, *waiting.pop(0)) or refused
            while waiting:
                await self._answered(who, *waiting.pop(0))
        except (*LIVES, Refused):
            pass  # what has no answer has no line: it is unknown
        finally:
            connection.close()

    async def _answered(self, who, id_, future):
        """Whether it was taken."""
        try:
            amqp.check_outcome(await asyncio.wait_for(future, 10))
            result = "accepted"
        except Refused as e:
            result = "refused" if e.condition == REFUSED else "unknown"
        self.history.say(who, "sent", id=id_, result=result)
        self.refused += result == "refused"
        return result == "accepted"

    async def ebb(self, port):
        """Receives what is there, so that the disk has room for the next one."""
        await asyncio.gather(*(self._receive(port, queue) for queue in self.queues))

    async def _receive(self, port, queue):
        who, until = f"ebb-{queue}", time.monotonic() + DRAIN_SECONDS
        try:
            connection = await Connection.open(port)
        except Lost:
            return
        try:
            link = Receiver(connection, queue)
            await asyncio.wait_for(link.attached, 5)
            while time.monotonic() < until:
                if link.credit < 2:
                    link.give(8)
                delivery = await link.next(0.5)
                if delivery is None:
                    return
                message = Received(delivery.payload)
                what = {"id": message.body[:100].decode().split()[0], "from": queue, "seq": message.number}
                self.history.say(who, "got", **what, count=(message.count or 0) + 1,
                                 until=message.locked_until * 1000)
                self.history.say(who, "settle", **what, how="complete")
                amqp.check_settled(await asyncio.wait_for(link.settle(delivery, amqp.COMPLETE), 10), amqp.COMPLETE)
                self.history.say(who, "settled", **what, how="complete", result="accepted")
        except (*LIVES, Refused):
            pass
        finally:
            connection.close()
