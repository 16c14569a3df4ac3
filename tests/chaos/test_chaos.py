"""The parts of the chaos run that can be wrong by themselves: the proxy, and what is made of the logs."""

import asyncio
import pathlib
import random
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "interop")]
from chaos import falsify, merge  # noqa: E402
from chaos.faults import Deck  # noqa: E402
from chaos.merge import LOCK  # noqa: E402
from chaos.proxy import Proxy  # noqa: E402


class Echo:
    """A server that answers with what it got, behind a proxy."""

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port, self.closed, self.ended = self.server.sockets[0].getsockname()[1], [], asyncio.Event()
        self.proxy = Proxy(lambda: self.port, self.closed.append)
        self.lane = await self.proxy.lane("one")
        return self

    async def serve(self, reader, writer):
        try:
            while data := await reader.read(1000):
                writer.write(data)
        except OSError:
            pass
        self.ended.set()
        writer.close()

    async def __aexit__(self, *_):
        self.proxy.close()
        self.server.close()

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.lane.port)


async def comes(reader, count):
    return await asyncio.wait_for(reader.readexactly(count), 10)


async def ends(reader):
    """What still comes before the connection is gone."""
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""


class TheProxy(unittest.IsolatedAsyncioTestCase):
    async def test_bytes_pass_both_ways(self):
        async with Echo() as echo:
            reader, writer = await echo.connect()
            writer.write(b"hello")
            self.assertEqual(await comes(reader, 5), b"hello")
            writer.close()

    async def test_a_cut_ends_both_sides_and_is_told_once(self):
        async with Echo() as echo:
            reader, writer = await echo.connect()
            writer.write(b"x")
            await comes(reader, 1)
            echo.lane.cut()
            self.assertEqual(await ends(reader), b"")
            await asyncio.wait_for(echo.ended.wait(), 10)
            self.assertEqual(echo.closed, ["one"])
            writer.close()

    async def test_a_cut_in_a_chunk_lets_a_part_of_it_through(self):
        async with Echo() as echo:
            reader, writer = await echo.connect()
            writer.write(b"x")
            await comes(reader, 1)
            echo.lane.cut_in_chunk()
            writer.write(b"0123456789")
            self.assertLess(len(await ends(reader)), 10)
            writer.close()

    async def test_a_dropped_connection_is_gone_for_the_client_only_until_it_is_healed(self):
        async with Echo() as echo:
            reader, writer = await echo.connect()
            writer.write(b"x")
            await comes(reader, 1)
            echo.lane.drop()
            self.assertEqual(await ends(reader), b"")
            self.assertFalse(echo.ended.is_set())
            echo.proxy.heal()
            await asyncio.wait_for(echo.ended.wait(), 10)
            writer.close()

    async def test_what_is_stalled_comes_later_and_whole(self):
        async with Echo() as echo:
            reader, writer = await echo.connect()
            echo.lane.open.clear()
            writer.write(b"later")
            await asyncio.sleep(0)
            echo.lane.open.set()
            self.assertEqual(await comes(reader, 5), b"later")
            writer.close()

    async def test_without_a_broker_a_connection_ends(self):
        async with Echo() as echo:
            echo.server.close()
            await echo.server.wait_closed()
            reader, writer = await echo.connect()
            self.assertEqual(await ends(reader), b"")
            writer.close()


class TheDeck(unittest.TestCase):
    def test_every_card_comes_once_before_any_comes_again(self):
        deck = Deck(random.Random(1), "abc")
        self.assertEqual(sorted(deck.next() for _ in range(3)), ["a", "b", "c"])
        self.assertEqual(sorted(deck.next() for _ in range(3)), ["a", "b", "c"])


def got(t, until, who="js-0", **more):
    return {"t": t, "who": who, "do": "got", "id": "m", "from": "q", "seq": 1, "count": 1, "until": until, **more}


def fault(t, what, **more):
    return {"t": t, "who": "chaos", "do": "fault", "what": what, **more}


class Reading(unittest.TestCase):
    LINE = b'{"t":%d,"who":"js-0","do":"begin","tx":"x"}\n'

    def read(self, killed=(), **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (pathlib.Path(folder) / f"{name}.jsonl").write_bytes(content)
            return [event["t"] for event in merge.read(pathlib.Path(folder), killed)]

    def broken(self, why, **more):
        with self.assertRaisesRegex(merge.Broken, why):
            self.read(**more)

    def test_files_are_one_history_in_the_order_of_time(self):
        self.assertEqual(self.read(js=self.LINE % 1 + self.LINE % 4, java=self.LINE % 3, idle=b""), [1, 3, 4])

    def test_the_last_line_of_who_was_killed_may_have_no_end(self):
        torn = self.LINE % 1 + (self.LINE % 2)[:20]
        self.assertEqual(self.read(js=torn, killed={"js"}), [1])
        self.broken("js.jsonl:2: has no end", js=torn, killed={"java"})
        self.assertEqual(self.read(js=(self.LINE % 1).rstrip(), killed={"js"}), [1])  # only the line feed is missing

    def test_any_other_line_that_cannot_be_read_is_an_error(self):
        for bad in (b'{"t":2,"wh\n', b"\n", b"[]\n", b'{"t":2}\n', b'{"t":"2","do":"begin"}\n',
                    b'{"t":2,"do":"\xff"}\n'):
            self.broken("js.jsonl:2: ", js=self.LINE % 1 + bad + self.LINE % 3, killed={"js"})
            self.broken("js.jsonl:2: ", js=self.LINE % 1 + bad, killed={"js"})

    def test_a_line_ends_with_a_line_feed_only(self):
        text = '{"t":1,"do":"fault","what":"x","note":"a\u2028b\x85"}\n'.encode()
        self.assertEqual(self.read(js=text), [1])


class Merging(unittest.TestCase):
    def untils(self, *events, log=""):
        return [event["until"] for event in merge.merged(events, log) if event["do"] == "got"]

    def test_a_lock_that_was_taken_before_a_crash_and_is_told_after_it_is_not_counted_on(self):
        events = [got(5, 4 + LOCK), fault(10, "crash"), got(15, 9 + LOCK), fault(20, "started"), got(30, 10 + LOCK),
                  got(40, 11 + LOCK)]
        self.assertEqual(self.untils(*events), [4 + LOCK, 15, 30, 11 + LOCK])

    def test_a_store_that_failed_is_a_fault_at_its_time(self):
        log = ("2026-01-01T00:00:01.000+00:00 info store=1 open\n"
               "2026-01-01T00:00:02.500+00:00 error store=1 failed: no room\n")
        [event] = merge.merged([], log)
        at = 1767225602500000
        self.assertEqual((event["t"], event["what"]), (at, "fail"))
        self.assertEqual(self.untils(got(at + 9, at - 1 + LOCK), got(at + 10, at + 1 + LOCK), log=log),
                         [at + 9, at + 1 + LOCK])

    def test_a_connection_that_was_closed_for_what_was_said_on_it_is_found(self):
        start = "2026-01-01T00:00:01.000+00:00 info connection=1 peer=127.0.0.1:1"
        bad = f"{start} closed condition=amqp:not-allowed channel 1 has no session"
        log = "\n".join([f"{start} transport=tcp opened container='c' hostname='h'", bad, f"{start} closed",
                         f"{start} closed condition=amqp:connection:forced the transport is gone", ""])
        self.assertEqual(merge.disputes(log), [bad])

    def test_a_session_is_lost_with_its_connection(self):
        def locked(t, taken, who="js-0", session="s"):
            return {"t": t, "who": who, "do": "locked", "session": session, "from": "q", "until": taken + LOCK}

        events = [locked(1, 0), got(2, LOCK, session="s"), locked(3, 2, "other-0", "z"), fault(4, "closed", lane="js"),
                  got(5, LOCK, session="s"), locked(6, 3), got(7, LOCK, session="s"), locked(8, 7),
                  got(9, 7 + LOCK, session="s")]
        history = merge.merged(events)
        self.assertEqual(self.untils(*events), [LOCK, 5, 7, 7 + LOCK])
        self.assertEqual([(e["t"], e["who"]) for e in history if e["do"] == "unlocked"], [(4, "js-0")])
        self.assertEqual([e["t"] for e in history if e["do"] == "locked"], [1, 3, 8])


class Falsifying(unittest.TestCase):
    def test_a_story_changes_a_copy(self):
        events = [{"t": 1, "who": "chaos", "do": "counts", "from": "plain", "active": 1, "dead": 0, "scheduled": 0}]
        story = falsify.Story(events)
        falsify.miscounted(story)
        self.assertEqual((story.events[0]["active"], events[0]["active"]), (2, 1))


if __name__ == "__main__":
    unittest.main()
