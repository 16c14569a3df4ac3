"""The statements of the documents that the product was asked for, and their proofs.

A proof is text:
  "js queue/batch"          a scenario that a client of tests/interop runs
  "unit Suite.Name"         a unit test
  "crash kills"             the load of tests/crash, with the broker killed again and again
  "statement P35"           a row of tests/statements
"""

KEPT, DIFFERS, PART, MISSING = "kept", "kept otherwise", "in part", "not yet"
ROWS = {}


def differs(why):
    return DIFFERS, why


def part(why):
    return PART, why


def missing(why):
    return MISSING, why


def row(identity, text, *proofs, note=(KEPT, "")):
    """Registers a statement."""
    if identity in ROWS:
        raise ValueError(f"{identity} is there twice")
    state, why = note
    if (state == MISSING) != (not proofs):
        raise ValueError(f"{identity}: a statement has a proof, or is missing and says why")
    ROWS[identity] = (text, proofs, state, why)
