"""Whether XLA compiled two functions to the same program, whatever the names of its instructions and their order."""

from __future__ import annotations

import re

_INSTRUCTION = re.compile(r"^ +(ROOT )?%?([\w.-]+) = (.*)$")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) .*\{$")
# where an instruction comes from, and how the compiler was set: no part of what it computes
_REMARKS = re.compile(r", (metadata|backend_config|frontend_attributes|origin)=.*$")
_NAME = re.compile(r"%([\w.-]+)")


def same_program(first: str, second: str) -> bool:
    """Whether the results of two compiled programs are the same instructions of the same operands."""
    return result(first) == result(second)


def result(text: str) -> int:
    """A number for what the entry of a program returns: equal for equal expressions of its parameters."""
    known: dict[str, int] = {}
    found, computation = 0, ""
    for line in text.splitlines():
        if start := _COMPUTATION.match(line):
            computation = start[2]
        elif instruction := _INSTRUCTION.match(line):
            root, name, body = instruction.groups()
            bare = _REMARKS.sub("", body)
            known[name] = hash(_NAME.sub(lambda m: str(known.get(m[1], "")), bare))
            if root:
                # later instructions call the computation by its name; the entry is the last one
                found = known[computation] = known[name]
    return found
