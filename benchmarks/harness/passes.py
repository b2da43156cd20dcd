"""The two passes that are measured, and what a worker is at."""

FORWARD, BOTH = "forward", "forward + backward"
PASSES = (FORWARD, BOTH)


def stage(which: str, side: str) -> str:
    """What a worker is at while it compiles, runs and checks a side."""
    return f"{which} of {side}"


def side_of(at: str) -> tuple[str, str] | None:
    """The pass and the side of a :func:`stage`; None for what is the work of no one side."""
    which, _, side = at.partition(" of ")
    return (which, side) if which in PASSES and side else None
