"""Runs the rows. The last line is `N passed, N failed, N skipped`."""

import argparse
import pathlib
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "interop"), str(HERE.parent / "interop" / "clients" / "raw")]

import partition_management  # noqa: E402,F401  pylint: disable=unused-import
import partitions  # noqa: E402
from rig import Rig  # noqa: E402
from table import ROWS  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="Proves the statements row by row.")
    parser.add_argument("binary")
    parser.add_argument("--only", default="", help="rows, separated by commas")
    parser.add_argument("-v", "--verbose", action="store_true", help="where a failed row failed")
    options = parser.parse_args()
    wanted = [identity.strip() for identity in options.only.split(",") if identity.strip()]
    unknown = [identity for identity in wanted if identity not in ROWS]
    if unknown:
        parser.error(f"there is no row {', '.join(unknown)}")
    missing = [identity for identity in partitions.ALL if identity not in ROWS]
    failed = 0
    for identity in missing:
        failed += 1
        print(f"FAIL {identity}: nothing proves it")
    with tempfile.TemporaryDirectory(prefix="omnibus-statements-") as folder:
        rig = Rig(options.binary, pathlib.Path(folder))
        rig.start()
        passed = 0
        for identity in wanted or sorted(ROWS, key=lambda one: (one[0], int(one[1:]))):
            said, proof = ROWS[identity]
            began = time.monotonic()
            try:
                proof(rig)
            except Exception as e:
                failed += 1
                print(f"FAIL {identity} {said}: {type(e).__name__}: {str(e)[:600]}", flush=True)
                if options.verbose:
                    traceback.print_exc()
                if not rig.broker.alive():
                    print(f"the broker is gone\n{rig.broker.log_tail()}")
                    break
            else:
                passed += 1
                print(f"ok   {identity} {said} ({time.monotonic() - began:.1f} s)", flush=True)
        if rig.broker.alive():
            rig.stop()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
