"""What a compiled program does, read off its text: kernels, bytes they move, loops by their trips, and seconds by a roofline.

What the model cannot know: atomics, occupancy, caches, cuDNN's choice among algorithms, what a TPU overlaps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

_SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "f64": 8, "s64": 8, "u64": 8, "c64": 8}  # fmt: skip
_ARRAY = re.compile(r"\b(pred|[sufc]\d+|bf16)\[([\d,]*)\](?:\{([\d,]*)(?::([^}]*))?\})?")
_INSTRUCTION = re.compile(r"\s*(ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)")
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) \(")
_OPERAND = re.compile(r"%([\w.\-]+)")
_FREE = frozenset(
    [
        "parameter",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "constant",
        "after-all",
        "partition-id",
        "replica-id",
        "copy-done",
        "async-done",
        "optimization-barrier",
        "slice-done",
        "dynamic-slice-done",
        "all-gather-done",
    ]
)
_PARTS = frozenset(("slice", "dynamic-slice", "gather"))
# copies that run beside kernels, and where in their type what they write stands; the other array is what they read of
_COPIES = {"copy-start": 0, "slice-start": 1, "dynamic-slice-start": 1}
_RENAMES = 'custom_call_target="ConcatBitcast"'  # parts that were copied one after the other are one array
COUNTED = (
    "scatter",
    "select-and-scatter",
    "sort",
    "gather",
    "convolution",
    "dot",
    "reduce-window",
    "custom-call",
)
UNKNOWN_TRIPS = 10
# which reading of the text the seconds are by, where it is not the first: 2 counts copies between memories of a TPU as what they move, and
# what a convolution of cuDNN takes to start and the elements that windows meet on a GPU
MODELS = {"tpu": 2, "gpu": 2}
_LIBRARY = "__cudnn$conv"
_ON_CHIP = "S(1)"
# what a TPU's compiler says that a kernel takes, by which it chooses; of slices, gathers and copies between memories it says nothing
_STATED = re.compile(r'"estimated_cycles":"(\d+)"')


@dataclass(frozen=True)
class Rates:
    """Bytes and float32 operations of products a second, the seconds that a kernel takes to start, how many kernels a convolution of a library takes
    as long as, and the elements that ``reduce-window`` meets a second."""

    bandwidth: float
    products: float
    start: float
    library: int = 1
    window: float = float("inf")


# data sheets: H100 SXM with TF32 products, v5e with bf16 passes; of an H100 by the clock what a convolution of cuDNN takes and what windows take
RATES = {
    "gpu": Rates(3.35e12, 1.2e14, 2.5e-6, library=10, window=8e12),
    "tpu": Rates(8.1e11, 5e13, 3e-7),
    "cpu": Rates(1e10, 4e10, 0),
}


@dataclass(frozen=True)
class Instruction:
    name: str
    type: str
    kind: str
    rest: str
    root: bool

    @property
    def operands(self) -> list[str]:
        return _OPERAND.findall(self.rest.split("), ")[0])

    def called(self, what: str) -> str:
        found = re.search(rf"\b{what}=\{{?%?([\w.\-]+)", self.rest)
        return found[1] if found else ""


@dataclass
class Spent:
    """What part of a program takes."""

    seconds: float = 0.0
    bytes: float = 0.0
    kernels: int = 0
    trips: int = 0
    cycles: int = 0

    def add(self, other: Spent, times: int = 1) -> None:
        self.seconds += times * other.seconds
        self.bytes += times * other.bytes
        self.kernels += times * other.kernels
        self.trips += times * other.trips
        self.cycles += times * other.cycles


@dataclass
class Text:
    """The computations of a compiled module."""

    rates: Rates
    bodies: dict[str, list[Instruction]] = field(default_factory=dict)
    entry: str = ""

    def of(self, name: str) -> Spent:
        """What one run of a computation takes."""
        total = Spent()
        types = {i.name: i.type for i in self.bodies[name]}
        for instruction in self.bodies[name]:
            kind = instruction.kind
            if kind in _FREE or _RENAMES in instruction.rest:
                continue
            if kind in _COPIES:
                total.add(self._copy(instruction))
                continue
            if kind == "while":
                trips = re.search(r'known_trip_count"?:\{"?n"?:"?(\d+)', instruction.rest)
                times = int(trips[1]) if trips else UNKNOWN_TRIPS
                total.add(self.of(instruction.called("body")), times)
                total.trips += times
            elif kind in ("call", "conditional", "async-start") and (called := self._called(instruction)):
                total.add(self.of(called))
            else:
                total.add(self._kernel(instruction, types))
        return total

    def _called(self, instruction: Instruction) -> str:
        names = [instruction.called(what) for what in ("to_apply", "calls", "called_computations", "branch_computations", "true_computation")]  # fmt: skip
        return next((n for n in names if n in self.bodies), "")

    def _kernel(self, instruction: Instruction, types: dict[str, str]) -> Spent:
        read = [array_bytes(types.get(o, "")) for o in instruction.operands]
        written = array_bytes(instruction.type)
        if instruction.kind in _PARTS:
            read = [min(r, written) for r in read]
        fused = self.bodies.get(instruction.called("calls"), []) if instruction.kind == "fusion" else []
        if fused:
            read = [min(r, p) for r, p in zip(read, self._parts_read(fused, len(read)), strict=True)]
            written = self._written(fused, written, read)
        moved = sum(read) + written
        work = self._products(fused or [instruction], types) / self.rates.products
        met = sum(elements(i.type) * _window(i) for i in fused or [instruction] if i.kind == "reduce-window")
        start = self.rates.start * (self.rates.library if _LIBRARY in instruction.rest else 1)
        stated = _STATED.search(instruction.rest)
        seconds = max(moved / self.rates.bandwidth, work, met / self.rates.window) + start
        return Spent(seconds, moved, 1, cycles=int(stated[1]) if stated else 0)

    def _copy(self, instruction: Instruction) -> Spent:
        """A copy between memories, or of a part: what is moved, once for each side that is main memory; no kernel is started for it."""
        arrays = [m[0] for m in _ARRAY.finditer(instruction.type)][:2]
        moved = array_bytes(arrays[_COPIES[instruction.kind]].replace(_ON_CHIP, ""))
        sides = sum(_ON_CHIP not in a for a in arrays)
        return Spent(moved * sides / self.rates.bandwidth, moved * sides)

    def _parts_read(self, fused: list[Instruction], count: int) -> list[float]:
        """Bytes of each parameter that a fusion reads: those of slices, where nothing reads the whole."""
        found = [float("inf")] * count
        for parameter in fused:
            if parameter.kind == "parameter" and (at := int(parameter.rest.split(")")[0])) < count:
                readers = [i for i in fused if parameter.name in i.operands]
                if readers and all(i.kind in _PARTS and i.operands[0] == parameter.name for i in readers):
                    found[at] = sum(array_bytes(i.type) for i in readers)
        return found

    def _written(self, fused: list[Instruction], written: float, read: list[float]) -> float:
        """Bytes that a fusion writes: of an update in place only those of the update, and what is updated is not read."""
        root = next((i for i in fused if i.root), None)
        if root is None or root.kind != "dynamic-update-slice":
            return written
        by_name = {i.name: i for i in fused}
        target, update = (by_name.get(o) for o in root.operands[:2])
        if target is not None and target.kind == "parameter":
            read[int(target.rest.split(")")[0])] = 0
        return array_bytes(update.type) if update is not None else written

    def _products(self, instructions: list[Instruction], types: dict[str, str]) -> float:
        """Operations of products: twice the results times the elements that each is summed over."""
        known = types | {i.name: i.type for i in instructions}
        total = 0.0
        for i in instructions:
            if i.kind == "dot" or (i.kind == "custom-call" and ("gemm" in i.rest or "matmul" in i.rest)):
                total += 2 * elements(i.type) * _contracted(i, known)
            elif i.kind == "convolution" or _LIBRARY in i.rest:
                sizes = [elements(known.get(o, "")) for o in i.operands[:2]]
                total += 2 * elements(i.type) * _window(i) * 1.0 if sizes else 0.0
        return total


def _contracted(dot: Instruction, types: dict[str, str]) -> float:
    found = re.search(r'lhs_contracting_dim(?:ension)?s"?[=:][{\[]"?([\d,"]*)', dot.rest)
    shape = _ARRAY.search(types.get(dot.operands[0], "")) if dot.operands else None
    if found is None or shape is None:
        return 1.0
    extents = [int(e) for e in shape[2].split(",") if e]
    return float(prod(extents[int(n)] for n in re.findall(r"\d+", found[1]) if int(n) < len(extents)))


def _window(convolution: Instruction) -> float:
    found = re.search(r"window=\{size=([\dx]+)", convolution.rest)
    return float(prod(int(e) for e in found[1].split("x"))) if found else 1.0


def elements(type_: str) -> float:
    found = _ARRAY.search(type_)
    return float(prod(int(e) for e in found[2].split(",") if e)) if found else 0.0


def array_bytes(type_: str) -> float:
    """Bytes of the arrays in a type in main memory: padded to tiles where the layout says so, none in the memory of the chip."""
    total = 0.0
    for dtype, dims, order, layout in _ARRAY.findall(type_):
        if _ON_CHIP in layout:
            continue
        extents = [int(e) for e in dims.split(",") if e]
        tile = re.match(r"T\(([\d,]+)\)", layout)
        if tile and order and extents:
            minor = [int(n) for n in order.split(",")]
            for size, axis in zip(reversed([int(t) for t in tile[1].split(",")]), minor, strict=False):
                extents[axis] = -(-extents[axis] // size) * size
        size = _SIZES.get(dtype, 4)
        total += size * prod(extents)
    return total


def parsed(text: str, platform: str) -> Text:
    """A compiled module's text."""
    found = Text(RATES[platform])
    current: list[Instruction] = []
    for line in text.splitlines():
        if not line.startswith(" "):
            if head := _COMPUTATION.match(line):
                current = found.bodies.setdefault(head[2], [])
                found.entry = head[2] if head[1] else found.entry
        elif m := _INSTRUCTION.match(line):
            current.append(Instruction(m[2], m[3], m[4], m[5], bool(m[1])))
    return found


def figures(program: Any, platform: str) -> dict[str, Any]:
    """Seconds by the model, and what was counted."""
    text = program.as_text()
    spent = (module := parsed(text, platform)).of(module.entry)
    every = [i for body in module.bodies.values() for i in body]
    return {
        "seconds": spent.seconds,
        "bytes": spent.bytes,
        "kernels": spent.kernels,
        "trips": spent.trips,
        **({"cycles": spent.cycles} if spent.cycles else {}),
        "temporaries": program.memory_analysis().temp_size_in_bytes,
        "operations": {k: n for k in COUNTED if (n := sum(i.kind == k for i in every))},
        "model": MODELS.get(platform, 1),
    }


def is_earlier(found: Mapping[str, Any], platform: str) -> bool:
    """Whether the figures of a pass, or of all, are by an earlier model."""
    sides = [side for side in found.values() if isinstance(side, Mapping)]
    return ("seconds" in found and found.get("model", 1) != MODELS.get(platform, 1)) or any(
        is_earlier(s, platform) for s in sides
    )
