"""The raw client: frame-level facts, byte by byte. Scenario names: runner/scenarios.py."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "python"), str(HERE.parent.parent)]

import report  # noqa: E402
import alternate_exchanges  # noqa: E402,F401  the modules register their scenarios
import counted  # noqa: E402,F401
import exchange_links  # noqa: E402,F401
import faults  # noqa: E402,F401
import handshake  # noqa: E402,F401
import links  # noqa: E402,F401
import management  # noqa: E402,F401
import message_sessions  # noqa: E402,F401
import namespace_hosts  # noqa: E402,F401
import rule_requests  # noqa: E402,F401
import times  # noqa: E402,F401
import topic_links  # noqa: E402,F401
import transactions  # noqa: E402,F401
import transfers  # noqa: E402,F401

report.run(report.REGISTERED)
