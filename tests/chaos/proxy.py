"""A small TCP proxy between the clients and the broker, one port per client, whose connections can be cut, cut in the
middle of what is being sent, held up, slowed down, or left half dead.

Bytes arrive as they were sent and in order, or not at all: this is what TCP promises too.
"""

import asyncio

CHUNK_BYTES = 16384


class Wire:
    """One connection of a client and its counterpart at the broker."""

    def __init__(self, lane, client, broker):
        self.lane = lane
        self.sides = (client, broker)  # (reader, writer) each
        self.cut_in_chunk = False
        lane.wires.add(self)
        self.tasks = [asyncio.create_task(self._pump(client[0], broker[1])),
                      asyncio.create_task(self._pump(broker[0], client[1]))]

    async def _pump(self, reader, writer):
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                if self.cut_in_chunk and len(chunk) > 1:
                    writer.write(chunk[:len(chunk) // 2])
                    break
                await self.lane.open.wait()
                if self.lane.delay_seconds:
                    await asyncio.sleep(self.lane.delay_seconds)
                writer.write(chunk)
                await writer.drain()
        except OSError:
            pass
        finally:
            self.close()

    def close(self):
        """Both ends see the connection gone; what is under way in here is lost."""
        if self not in self.lane.wires:
            return
        self._stop()
        for _, writer in self.sides:
            writer.transport.abort()

    def _stop(self):
        self.lane.wires.discard(self)
        self.lane.proxy.closed(self.lane.name)
        for task in self.tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def close_client_side(self):
        """The broker is left with a connection on which nothing comes any more."""
        self._stop()
        self.sides[0][1].transport.abort()
        self.lane.holes.append(self)

    def close_broker_side(self):
        self.sides[1][1].transport.abort()


class Lane:
    """The way of one client."""

    def __init__(self, proxy, name):
        self.proxy, self.name = proxy, name
        self.wires, self.holes = set(), []
        self.open = asyncio.Event()
        self.open.set()
        self.delay_seconds = 0
        self.server, self.port, self.connections = None, 0, 0

    async def listen(self):
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def _accept(self, reader, writer):
        try:
            broker = await asyncio.open_connection("127.0.0.1", self.proxy.target())
        except OSError:
            writer.transport.abort()  # as a port on which nobody listens
            return
        self.connections += 1
        Wire(self, (reader, writer), broker)

    def cut(self):
        for wire in list(self.wires):
            wire.close()

    def cut_in_chunk(self):
        """Cut with the next bytes, of which only some arrive."""
        for wire in list(self.wires):
            wire.cut_in_chunk = True

    def drop(self):
        for wire in list(self.wires):
            wire.close_client_side()

    def heal(self):
        self.open.set()
        self.delay_seconds = 0
        for wire in self.wires:
            wire.cut_in_chunk = False
        for wire in self.holes:
            wire.close_broker_side()
        self.holes.clear()


class Proxy:
    """`target` gives the broker's port of the moment; `closed(name)` is told of each connection that ends."""

    def __init__(self, target, closed):
        self.target, self.closed = target, closed
        self.lanes = {}

    async def lane(self, name):
        lane = self.lanes[name] = Lane(self, name)
        await lane.listen()
        return lane

    def heal(self):
        for lane in self.lanes.values():
            lane.heal()

    def close(self):
        for lane in self.lanes.values():
            lane.heal()
            lane.cut()
            lane.server.close()
