"""The rooms check finds what it is there to find: each rule meets a small tree that breaks it."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import check

MAP = "base:\namqp:base\nbroker:base,amqp/codec\nnet:base\nauth:base\n"


class RoomsCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for room in ["base", "amqp", "broker", "net", "auth"]:
            self.write(f"src/{room}/README.md", f"# {room}\n")
        self.write("src/base/bytes.hpp", "#pragma once\n#include <span>\n")
        self.write("src/amqp/codec/value.hpp", '#pragma once\n#include "base/bytes.hpp"\n')
        self.write("src/amqp/engine/engine.hpp", "#pragma once\n")
        self.write("src/broker/queue.hpp", '#pragma once\n#include "amqp/codec/value.hpp"\n')
        self.write("src/broker/queue.cpp", '#include "broker/queue.hpp"\n\n#include "base/bytes.hpp"\n')

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def broken(self, rule, room_map=MAP):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            places = rule(check.Tree(self.root, room_map))
        self.printed = out.getvalue()
        return places

    def run_main(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = check.main(["--root", str(self.root), *arguments])
        return code, out.getvalue()

    def test_a_clean_tree_passes_every_rule(self):
        for rule in check.RULES:
            self.assertEqual(self.broken(rule), [], rule.__name__)

    def test_a_forbidden_include_is_named_with_file_and_line(self):
        self.write("src/amqp/engine/engine.hpp", '#pragma once\n\n#include "net/reactor.hpp"\n')
        places = self.broken(check.arrows_match_includes)
        self.assertEqual(len(places), 1)
        self.assertIn('src/amqp/engine/engine.hpp:3: "net/reactor.hpp"', places[0])

    def test_angle_brackets_do_not_hide_an_arrow(self):
        self.write("src/base/bytes.hpp", "#pragma once\n#  include <amqp/codec/value.hpp>\n")
        self.assertIn("src/base/bytes.hpp:2", self.broken(check.arrows_match_includes)[0])

    def test_an_arrow_at_a_part_does_not_open_the_whole_room(self):
        self.write("src/broker/queue_test.cpp", '#include "amqp/engine/engine.hpp"\n')
        self.assertIn("src/broker/queue_test.cpp:1", self.broken(check.arrows_match_includes)[0])

    def test_a_part_is_not_a_prefix_of_a_longer_name(self):
        self.write("src/broker/queue.cpp", '#include "broker/queue.hpp"\n#include "amqp/codec_extra/x.hpp"\n')
        self.assertEqual(len(self.broken(check.arrows_match_includes)), 1)

    def test_a_relative_include_is_refused(self):
        self.write("src/broker/topic.cpp", '#include "../net/reactor.hpp"\n#include "queue.hpp"\n')
        self.assertEqual(len(self.broken(check.arrows_match_includes)), 2)

    def test_an_include_in_a_comment_is_no_include(self):
        self.write("src/base/bytes.hpp", '// #include "net/a.hpp"\n/*\n#include "net/b.hpp"\n*/\n')
        self.assertEqual(self.broken(check.arrows_match_includes), [])

    def test_an_include_after_a_text_that_looks_like_a_comment_is_found(self):
        self.write("src/base/bytes.hpp", 'auto a = "/*";\n#include "net/b.hpp"\nauto b = "*/";\n')
        self.assertEqual(len(self.broken(check.arrows_match_includes)), 1)

    def test_a_room_without_add_room_is_found(self):
        self.write("src/extra/README.md", "# extra\n")
        self.assertIn("'extra' has no add_room()", self.broken(check.arrows_match_includes)[0])

    def test_arrows_in_a_circle_are_found(self):
        self.assertIn("amqp -> net -> amqp", self.broken(check.arrows_have_no_circle, "amqp:net\nnet:amqp/codec\n")[0])

    def test_an_arrow_at_nothing_is_found(self):
        self.assertIn("MAY_USE amqp/kodec", self.broken(check.arrows_lead_somewhere, "broker:amqp/kodec\n")[0])

    def test_a_missing_readme_is_found(self):
        (self.root / "src/net/README.md").unlink()
        self.assertEqual(self.broken(check.rooms_have_a_readme), ["src/net/README.md:1: missing"])

    def test_a_source_that_does_not_begin_with_its_header_is_found(self):
        self.write("src/broker/queue.cpp", '#include <vector>\n#include "broker/queue.hpp"\n')
        self.assertIn("src/broker/queue.cpp:1", self.broken(check.own_header_comes_first)[0])

    def test_boost_is_allowed_at_the_edges_only(self):
        for room in ["net", "auth", "broker"]:
            self.write(f"src/{room}/x.hpp", "#include <boost/json.hpp>\n#include <boost/asio/ip/tcp.hpp>\n#include <boost/container/deque.hpp>\n")
        self.assertEqual(
            self.broken(check.boost_stays_at_the_edges),
            [
                "src/auth/x.hpp:2: <boost/asio/ip/tcp.hpp> in 'auth'",
                "src/broker/x.hpp:1: <boost/json.hpp> in 'broker'",
                "src/broker/x.hpp:2: <boost/asio/ip/tcp.hpp> in 'broker'",
            ],
        )

    def test_a_mutex_in_a_machine_is_found_and_one_in_net_is_not(self):
        for room in ["broker", "net"]:
            self.write(f"src/{room}/m.hpp", "#include <mutex>\n// no std::mutex here\nstd::shared_mutex m_;\n")
        places = self.broken(check.machines_hold_no_mutex)
        self.assertEqual([p.split(": ")[0] for p in places], ["src/broker/m.hpp:1", "src/broker/m.hpp:3"])

    def test_the_word_mutex_in_a_text_is_harmless(self):
        self.write("src/broker/m.hpp", 'auto text = "std::mutex";\nauto raw = R"(std::mutex)";\n')
        self.assertEqual(self.broken(check.machines_hold_no_mutex), [])

    def test_length_warns_past_600_and_fails_past_800(self):
        for lines, fails, warns in [(600, 0, False), (601, 0, True), (800, 0, True), (801, 1, False)]:
            self.write("src/base/long.hpp", "\n" * lines)
            self.assertEqual(len(self.broken(check.files_stay_short)), fails, lines)
            self.assertEqual("warning" in self.printed, warns, lines)

    def test_a_fuzzer_without_seeds_is_found(self):
        self.write("src/amqp/codec/value_fuzz.cpp", "")
        self.assertEqual(len(self.broken(check.fuzzers_have_a_corpus)), 1)
        self.write("tests/corpus/value_fuzz/one", "x")
        self.assertEqual(self.broken(check.fuzzers_have_a_corpus), [])

    def test_the_program_fails_with_the_place_and_counts(self):
        self.write("map", MAP)
        self.assertEqual(self.run_main("--map", str(self.root / "map"))[0], 0)
        self.write("src/base/bytes.hpp", '#include "net/reactor.hpp"\n')
        code, out = self.run_main("--map", str(self.root / "map"))
        self.assertEqual(code, 1)
        self.assertIn("src/base/bytes.hpp:1", out)
        self.assertTrue(out.endswith(f"{len(check.RULES) - 1} passed, 1 failed, 0 skipped\n"))

    def test_arrows_can_be_read_from_cmake(self):
        self.write("src/broker/CMakeLists.txt", "add_room(broker # x\n  SOURCES a.cpp\n  MAY_USE base amqp/codec\n  TESTS t.cpp)")
        self.write("src/base/CMakeLists.txt", "add_room(base SOURCES b.cpp)")
        self.assertEqual(check.parse_map(check.map_from_cmake(self.root)), {"base": [], "broker": ["base", "amqp/codec"]})


if __name__ == "__main__":
    unittest.main()
