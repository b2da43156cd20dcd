"""Work that is counted: how much a question of derivation may take before it is left open, and the plain form is written.

What is counted are steps of our own (nodes visited, operations of isl), never time: the same definition gives the same text on every machine. A question
has a budget of its own, whatever was asked before, so that answers may be remembered.
"""

from __future__ import annotations

SOLVING = 120_000  # nodes of conditions that solving one set of equations may visit
OPERATIONS = 400_000  # of isl, for one question: a fifth of a second
UNANSWERED = 2  # questions that isl may leave open while one set of equations is solved
DIGIT_AXES = 8  # axes that a sum may be taken apart into while it is looked at


class Exhausted(Exception):
    """A budget is spent."""


class Budget:
    """What is left of the work that one question may take.

    Args:
        limit: how much that is.

    Example:
        >>> budget = Budget(10)
        >>> budget.spend(8)
        >>> budget.left
        2
    """

    def __init__(self, limit: int) -> None:
        self.left = limit

    def spend(self, amount: int) -> None:
        """Takes ``amount`` off.

        Raises:
            Exhausted: there is not as much left.
        """
        self.left -= amount
        if self.left < 0:
            raise Exhausted
