"""The table: a statement, and what proves it."""

ROWS = {}


def statement(identity, text):
    """Registers the function below it, which gets a Rig, as the proof of a statement."""
    def register(proof):
        same(identity in ROWS, False, f"two proofs of {identity}")
        ROWS[identity] = (text, proof)
        return proof
    return register


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def same(got, expected, what):
    check(got == expected, f"{what}: expected {expected!r}, got {got!r}")


def raises(kind, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as e:
        return str(e)
    except Exception as e:
        raise AssertionError(f"expected {kind.__name__}, got {type(e).__name__}: {e}") from e
    raise AssertionError(f"expected {kind.__name__}, but it worked")
