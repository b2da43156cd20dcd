"""Programs for a GPU, exported where there is none: suite, corpus, operators and losses, each by jaxte in several ways and by plain JAX.

    python benchmarks/platforms/exported.py FOLDER --group raised unseen --shard 0/2
    python benchmarks/platforms/exported.py FOLDER --group corpus cases --facts        # with each fact of the row turned round

A file for each function: programs of StableHLO, those of the same text once, and what its arguments look like. ``on_device.py`` compiles and times
them with JAX and NumPy alone, so that a machine with a device is needed for nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[0] = str(ROOT / "benchmarks")

import jax  # noqa: E402
import numpy as np  # noqa: E402

import jaxte as te  # noqa: E402
from harness.case import CORPUS, IDIOMATIC, JAXTE, SUITE, load, names  # noqa: E402
from harness.inputs import draw  # noqa: E402
from harness.passes import BOTH, FORWARD  # noqa: E402
from harness.sides import heads, with_gradients  # noqa: E402
from jaxte.lower.cost.platforms import GPU, PLATFORMS  # noqa: E402
from operators import basic_rows, further_rows, image_rows  # noqa: E402
from operators.row import ROWS  # noqa: E402
from raised import EXAMPLES  # noqa: E402
from unseen import LOSSES  # noqa: E402

# importing the rows registers them
assert basic_rows and image_rows and further_rows
RAISED, UNSEEN, WILD, OPERATORS = "raised", "unseen", "wild", "operators"
GROUPS = (RAISED, UNSEEN, OPERATORS, SUITE, CORPUS, WILD)
WILD_MODULES = ("networks", "images", "physics", "particles", "densities", "solvers", "threads")
TARGET = os.environ.get("EXPORT_FOR", "cuda")  # cpu, to try the other command where there is no device
PLAIN, NOW, EVERYTHING = "plain", "now", "everything"
SAMPLE = 4096  # numbers that are kept of an array, from which a larger one is drawn
ASKED = {"steps": "steps", "apart": "differences apart"}
PLACES, NAMES = (
    re.compile(
        r'(?m)^#loc.*\n|\s*loc\((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*")*\))*\)|jax\.result_info = "[^"]*"'
    ),
    re.compile(r"@\w+"),
)
Variants = dict[str, tuple[Callable[..., Any], Sequence[Any]]]


def turned() -> dict[str, str]:
    """Rows with one fact turned round, entered as platforms of their own: the name of each, by the fact."""
    found = {}
    for own in fields(GPU):
        value = getattr(GPU, own.name)
        if isinstance(value, bool) and own.name not in (
            "transposes_apart",
            "holds_pairs",
        ):  # of what is raised
            found[own.name] = f"gpu {own.name}"
            PLATFORMS[found[own.name]] = replace(GPU, **{own.name: not value})
    return found


def otherwise() -> dict[str, str]:
    """Rows with other numbers, entered as platforms of their own."""
    rows = {
        "planned": replace(GPU, intermediate=6, loop=5_000_000),
        "untiled": replace(GPU, rates=replace(GPU.rates, cache=1e12)),
    }
    PLATFORMS.update({f"gpu {key}": row for key, row in rows.items()})
    return {key: f"gpu {key}" for key in rows}


def of_loss(f: Callable[..., Any], args: Sequence[Any]) -> Variants:
    """The value and the gradient of a loss: by JAX, by default, and with all that has a rule."""
    floats = tuple(n for n, a in enumerate(args) if all(_is_float(x) for x in jax.tree.leaves(a)))
    return {
        PLAIN: (jax.value_and_grad(f, floats), args),
        NOW: (te.value_and_grad(f, floats, platform="gpu"), args),
    } | (
        {EVERYTHING: (jax.value_and_grad(te.adjoint(f, everything=True, platform="gpu"), floats), args)}
        if os.environ.get("EVERYTHING", "1") == "1"
        else {}
    )


def _is_float(x: Any) -> bool:
    return jax.numpy.issubdtype(x.dtype, jax.numpy.floating)


def of_case(group: str, name: str, facts: bool, others: bool) -> Iterator[tuple[str, Variants]]:
    """The passes of a function that is defined both ways; with ``facts`` with its gradients only, by each row."""
    case = ROWS[name].case if group == OPERATORS else load(name)
    args = draw(case.inputs_at("full"))
    own, argnums = heads(case, IDIOMATIC, args), case.differentiated(args)
    rows: dict[str, dict[str, Any]] = {NOW: {"platform": "gpu"}}
    if facts:
        rows |= {fact: {"platform": row} for fact, row in turned().items()}
        rows |= {key: {"platform": "gpu", "forms": {"*": form}} for key, form in ASKED.items()}
    if others:
        rows |= {key: {"platform": row} for key, row in otherwise().items()}
    sides = {PLAIN: case.sides[IDIOMATIC]}
    sides |= {key: te.function(case.sides[JAXTE], **options) for key, options in rows.items()}
    both = bool(own and argnums)
    if not facts or not both:
        yield FORWARD, {key: (f, args) for key, f in sides.items()}
    if both:
        yield BOTH, {key: (with_gradients(f, argnums), [own, *args]) for key, f in sides.items()}


def passes(group: str, name: str, facts: bool, copies: int) -> Iterator[tuple[str, Variants]]:
    if group in (SUITE, CORPUS, OPERATORS):
        yield from of_case(group, name, facts, copies == 0)
        return
    example = EXAMPLES.get(name) if group == RAISED else None
    f, args = (example.loss, example.arguments()) if example else _losses(group)[name]()
    if copies > 1:
        if "conv_general_dilated" in str(jax.make_jaxpr(f)(*args)):
            return  # weights of each copy make another function of it
        args = jax.tree.map(lambda a: np.stack([np.asarray(a)] * copies), args)
        one = f
        f = lambda *own: jax.numpy.sum(jax.vmap(one)(*own))  # noqa: E731
    yield BOTH, of_loss(f, args)


def _losses(group: str) -> dict[str, Callable[[], Any]]:
    if group == UNSEEN:
        return dict(LOSSES)
    for module in WILD_MODULES:
        try:
            importlib.import_module(f"wild.{module}")
        except ImportError as missing:
            print(f"wild.{module} is left out: {missing}", flush=True)
    return {name: own.make for name, own in importlib.import_module("wild.registry").LOSSES.items()}


def listed(group: str) -> list[str]:
    if group in (SUITE, CORPUS):
        return names(group)
    return list({RAISED: EXAMPLES, OPERATORS: ROWS}.get(group) or _losses(group))


def exported(f: Callable[..., Any], args: Sequence[Any]) -> tuple[str, bytes]:
    """The program, and a name for its text."""
    specs = jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), a.dtype), list(args))
    leaves, tree = jax.tree.flatten(specs)
    flat = jax.jit(lambda *own: jax.tree.leaves(f(*jax.tree.unflatten(tree, own))))
    made = jax.export.export(flat, platforms=[TARGET])(*leaves)
    return hashlib.sha256(bare(made.mlir_module()).encode()).hexdigest()[:16], bytes(made.serialize())


def bare(module: str) -> str:
    """The text of a module without what it was made from: places in sources, and names."""
    own: dict[str, str] = {}
    return NAMES.sub(lambda m: own.setdefault(m[0], f"@{len(own)}"), PLACES.sub("", module))


def described(array: Any) -> dict[str, Any]:
    """The shape and the dtype of an array, and numbers that are in it."""
    own = np.asarray(array)
    flat = own.reshape(-1)
    if flat.size > SAMPLE:
        flat = (
            np.random.default_rng(0).choice(flat, SAMPLE, replace=False)
            if flat.size < 10**7
            else flat[:: flat.size // SAMPLE][:SAMPLE]
        )
    return {"shape": own.shape, "dtype": str(own.dtype), "sample": flat}


def kind(facts: bool, copies: int) -> str:
    return "facts" if facts else "rows" if copies == 0 else f"x{copies}" if copies > 1 else "now"


def write(folder: Path, group: str, name: str, facts: bool, copies: int) -> str:
    """A file for a function, and what is in it in a line."""
    told = []
    path = folder / f"{group}.{name}.{kind(facts, copies)}.zip"
    with zipfile.ZipFile(path.with_suffix(".part"), "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file:
        for which, variants in passes(group, name, facts, copies):
            texts, failed = {}, {}
            args = None
            for key, (f, args) in variants.items():
                begun = time.perf_counter()
                try:
                    texts[key], data = exported(f, args)
                except Exception as error:
                    failed[key] = f"{type(error).__name__}: {error}"[:300]
                    continue
                if f"{texts[key]}.bin" not in file.namelist():
                    file.writestr(f"{texts[key]}.bin", data)
                told.append(f"{key} {time.perf_counter() - begun:.1f}s")
            leaves = [described(a) for a in jax.tree.leaves(list(args))]
            for n, leaf in enumerate(leaves):
                with file.open(f"{which}.{n}.npy", "w") as out:
                    np.lib.format.write_array(out, leaf.pop("sample"), allow_pickle=False)
            file.writestr(f"{which}.json", json.dumps({"texts": texts, "failed": failed, "leaves": leaves}))
            told.append(f"{which}: {len(set(texts.values()))} programs {failed or ''}")
    path.with_suffix(".part").rename(path)
    return f"{group} {name}: {', '.join(told)}, {path.stat().st_size / 1e3:.0f} kB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--group", nargs="+", choices=GROUPS, required=True)
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument(
        "--facts", action="store_true", help="rows with one fact turned round, and forms that no row asks for"
    )
    parser.add_argument("--shard", default="0/1", help="which of how many processes this is")
    parser.add_argument(
        "--copies",
        type=int,
        default=1,
        help="of the arguments of a loss, whose sum is taken: sizes that fill a GPU",
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    own, of = map(int, options.shard.split("/"))
    wanted = [(g, n) for g in options.group for n in listed(g) if not options.only or n in options.only]
    for group, name in wanted[own::of]:
        if (options.folder / f"{group}.{name}.{kind(options.facts, options.copies)}.zip").exists():
            continue
        try:
            print(write(options.folder, group, name, options.facts, options.copies), flush=True)
        except Exception as error:
            print(group, name, repr(error)[:300], flush=True)


if __name__ == "__main__":
    main()
