"""Who may import whom in jaxte, read off the source: nothing is imported or run here.

Edit LAYERS when a module is added. A module imports only from lines above its own.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# "pkg.*" holds every module of the package that has no line of its own, and the package itself; these may
# import each other in any order without a cycle. "__init__" is jaxte itself. A line whose module is still to
# come does no harm.
LAYERS = (
    "lang.limits",  # numbers
    "lang.budget",
    "lang.errors",
    "lang.checks",
    "lang.interning",
    "lang.dtypes",
    "lang.operators",
    "lang.graphs",
    "lang.nodes",
    "lang.arithmetic",
    "lang.expr",
    "lang.walk",
    "lang.divisions",
    "lang.rules",
    "lang.scalars.rows",
    "lang.scalars.rules",
    "lang.scalars.special",
    "lang.scalars.table",
    "lang.scalars.times",
    "lang.scalars",
    "lang.functions.numbers",
    "lang.functions.choices",
    "lang.functions.elementwise",
    "lang.functions.special",
    "lang.functions.composed",
    "lang.functions",
    "lang.text",
    "lang",
    "sets.quasi_affine",
    "sets.linear",
    "sets.affine",
    "sets.index_forms",
    "sets.differences",
    "sets.isl_text",
    "sets.tabulate",
    "sets.domain",
    "sets.intervals",
    "sets.conditions",
    "sets.resolved",
    "sets.accesses",
    "sets.flow",
    "sets.transformation",
    "sets.solving.elimination",
    "sets.solving.pinning",
    "sets.solving.deskew",
    "sets.solving.smallest_box",
    "sets.solving.solve",
    "sets.solving",
    "sets.digits",
    "sets.piecewise_affine",
    "sets",
    "tensors.shapes",
    "tensors.facts",
    "tensors.tensor",
    "tensors.elementwise",
    "tensors.structure",
    "tensors.inputs",
    "tensors.reducers",
    "tensors.reductions",
    "tensors.bodies.*",
    "tensors.custom_reductions",
    "tensors.composed",
    "tensors.compute",
    "tensors.recurrences.node",
    "tensors.recurrences.earlier",
    "tensors.recurrences.nests",
    "tensors.recurrences.step",
    "tensors.recurrences.starts",
    "tensors.recurrences.steps",
    "tensors.recurrences.products",
    "tensors.recurrences.inner",
    "tensors.recurrences.given",
    "tensors.recurrences.define",
    "tensors.recurrences",
    "tensors.copies",
    "tensors",
    "show.notation",
    "show.plain",
    "show.tex",
    "show.printing",
    "show.boxes",
    "show",
    "meaning.feeds",
    "meaning.fact_checks",
    "meaning.rounding",
    "meaning.interpret",
    "meaning.cost",
    "meaning.points",
    "meaning",
    "algebra.signs",
    "algebra.value_ranges",
    "algebra.product",
    "algebra.idle_conditions",
    "algebra.sums",
    "algebra.exponential_sums",
    "algebra.known_places",
    "algebra.data",
    "algebra.data_conditions",
    "algebra.simplify",
    "algebra.polynomial",
    "algebra.without_effect",
    "algebra.centred_sums",
    "algebra",
    "planning.terms",
    "planning.asked",
    "planning.orders.*",
    "planning.indices.*",
    "planning.conditions.*",
    "planning.sum_steps",
    "planning.sums",
    "planning.chains.found",
    "planning.chains.extents",
    "planning.chains.values",
    "planning.chains.kept",
    "planning.chains.made",
    "planning.chains.nearer",
    "planning.chains.rolled",
    "planning.chains.groups",
    "planning.chains.looking_back",
    "planning.chains.idle_axes",
    "planning.chains.at_once",
    "planning.chains",
    "planning.graph",
    "planning",
    "autodiff.terms.guards",
    "autodiff.terms.scalar",
    "autodiff.terms.support",
    "autodiff.terms.zeros",
    "autodiff.terms.places",
    "autodiff.terms.beside",
    "autodiff.terms.shared",
    "autodiff.terms",
    "autodiff.rules.prefixes",
    "autodiff.rules.extremum",
    "autodiff.rules.extrema",
    "autodiff.rules.scans",
    "autodiff.rules.halves",
    "autodiff.rules.reductions",
    "autodiff.rules.seeds",
    "autodiff.rules.readers",
    "autodiff.rules.tangents",
    "autodiff.rules",
    "autodiff.sums.cheap",
    "autodiff.sums.blocks",
    "autodiff.sums.repeated_blocks",
    "autodiff.sums.quotients",
    "autodiff.sums.origins",
    "autodiff.sums",
    "autodiff",
    "derivatives.overrides",
    "derivatives.given_overrides",
    "derivatives.stand_ins",
    "derivatives.rebuilt",
    "derivatives.begun",
    "derivatives.solved_states",
    "derivatives.recurrent",
    "derivatives.linearity",
    "derivatives.known_functions",
    "derivatives.accumulation",
    "derivatives.reverse",
    "derivatives.forward",
    "derivatives.linear_maps",
    "derivatives.structured",
    "derivatives.regions",
    "derivatives.widened",
    "derivatives.verify",
    "derivatives",
    "lower.arrays.*",
    "lower.printing.*",
    "lower.code.*",
    "lower.views.*",
    "lower.match.*",
    "lower.cost.*",
    "lower.rewrites.*",
    "lower.body.*",
    "lower.forms.scan.*",
    "lower.forms.window.*",
    "lower.forms.band.*",
    "lower.forms.conv.*",
    "lower.forms.data.*",
    "lower.rules.*",
    "lower.tiles.*",
    "lower.recurrences.*",
    "lower.apart.*",
    "lower.program.across.*",
    "lower.program.*",
    "lower.forms",
    "lower",
    "bridge.jaxprs",
    "bridge.price.*",  # of programs of JAX, which frontends compare
    "bridge.primitive.*",
    "bridge.calls.*",
    "bridge.given.*",
    "bridge.compiled.*",
    "bridge.functions.*",
    "bridge.tuning_file",
    "bridge.tuning",
    "bridge",
    "frontends.text.*",  # patterns and formulas, which the bridge runs
    "frontends.loops.program",  # functions with loops, likewise
    "frontends.loops.reading.*",
    "frontends.loops.equations.*",
    "frontends.loops.*",
    # JAX functions are traced by jax itself, and run with what the bridge makes of their parts
    "frontends.*",
    "ops.*",
    "draw",
    "reports",
    "comparing",
    "joining",
    "testing",
    "__init__",
    "__main__",
)

_OF_JAX = {line for line in LAYERS if line.startswith("bridge")} | {
    "frontends.*",
    "ops.*",
    "comparing",
    "reports",
    "testing",
}

# library -> the lines of LAYERS that may import it
RESTRICTED = {
    "islpy": {
        "sets.accesses",
        "sets.isl_text",
        "sets.domain",
        "sets.flow",
    },
    "matplotlib": {"reports", "draw"},
    "jax": _OF_JAX,
    "jaxlib": _OF_JAX,
}

ROOT = Path(__file__).parent.parent / "jaxte"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Import:
    """`importer` imports `target`: a module of jaxte ("lower.ops", "__init__") or another library ("jax")."""

    importer: str
    target: str
    internal: bool
    in_function: bool
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.importer} imports {self.target}"


def modules(root: Path) -> dict[str, Path]:
    """The modules below `root` by name, without the leading `jaxte.`; a package goes by its own name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        found[".".join(parts)] = path
    return found


def layer(module: str) -> str | None:
    """The line of LAYERS that holds the module: its own if there is one, else the nearest package's."""
    if module in LAYERS:
        return module
    parts = module.split(".")
    packages = (".".join(parts[:n]) + ".*" for n in range(len(parts), 0, -1))
    return next((package for package in packages if package in LAYERS), None)


def imported_names(node: ast.Import | ast.ImportFrom, package: list[str]) -> Iterator[tuple[str, str | None]]:
    """(module, name) for each name of the statement. `package` is the path that relative imports start at."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, None
        return
    base = package[: len(package) - node.level + 1] if node.level else []
    source = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        yield source, alias.name


def imports_of(module: str, path: Path, root: Path, known: set[str]) -> Iterator[Import]:
    """Every import statement in the file, those inside functions and `if TYPE_CHECKING` included."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    nodes = list(ast.walk(tree))
    in_function = {inner for node in nodes if isinstance(node, FUNCTIONS) for inner in ast.walk(node)}
    package = ["jaxte", *module.split(".")]
    if path.name != "__init__.py" or module == "__init__":
        package.pop()
    for node in nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for source, name in imported_names(node, package):
            top, _, rest = source.partition(".")
            internal = top == "jaxte"
            target = submodule(rest, name, known) if internal else top
            yield Import(
                module,
                target,
                internal,
                node in in_function,
                f"{path.relative_to(root.parent)}:{node.lineno}",
            )


def submodule(source: str, name: str | None, known: set[str]) -> str:
    """What `from jaxte.source import name` imports: the module `source.name` if it exists, else `source`."""
    inner = ".".join(part for part in (source, name) if part)
    return inner if inner in known else source or "__init__"


@cache
def all_imports(root: Path) -> list[Import]:
    files = modules(root)
    known = {*files, *(line.removesuffix(".*") for line in LAYERS)}
    return [found for module, path in files.items() for found in imports_of(module, path, root, known)]


def unlisted(root: Path) -> list[str]:
    return [module for module in modules(root) if layer(module) is None]


def upward(found: list[Import]) -> list[Import]:
    """The imports within jaxte that are not from a line above. Modules without a line: see `unlisted`."""
    wrong = []
    for entry in found:
        importer, target = layer(entry.importer), layer(entry.target)
        if not entry.internal or importer is None or target is None:
            continue
        same_group = importer == target and importer.endswith(".*")
        if not same_group and LAYERS.index(target) >= LAYERS.index(importer):
            wrong.append(entry)
    return wrong


def cycle(found: list[Import]) -> list[str]:
    """The modules of one import cycle, in order; empty when there is none."""
    graph: TopologicalSorter[str] = TopologicalSorter()
    for entry in found:
        if entry.internal:
            graph.add(entry.importer, entry.target)
    try:
        graph.prepare()
    except CycleError as error:
        # graphlib names each module before the one that imports it
        return list(reversed(error.args[1]))
    return []


def restricted(found: list[Import]) -> list[Import]:
    return [
        e
        for e in found
        if e.target in RESTRICTED and not e.internal and layer(e.importer) not in RESTRICTED[e.target]
    ]


def lines(entries: list[Import]) -> str:
    return "\n".join(f"  {entry}" for entry in entries)


def test_every_module_has_a_layer() -> None:
    missing = unlisted(ROOT)
    assert not missing, (
        f"not in the table LAYERS of {Path(__file__).name}: {', '.join(missing)}. "
        "Add a line below everything the module imports and above everything that imports it."
    )


def test_modules_import_only_from_the_layers_above() -> None:
    wrong = upward(all_imports(ROOT))
    assert not wrong, f"imports against the order of LAYERS:\n{lines(wrong)}"


def test_the_lines_of_a_package_stand_together() -> None:
    """So packages depend on each other in one direction only, as modules do."""
    rooms = [line.partition(".")[0] for line in LAYERS]
    apart = [room for n, room in enumerate(rooms) if room in rooms[:n] and rooms[n - 1] != room]
    assert not apart, (
        f"modules of {', '.join(apart)} are lifted out of their package: move them to where they are asked"
    )


def test_no_import_of_jaxte_inside_a_function() -> None:
    wrong = [entry for entry in all_imports(ROOT) if entry.internal and entry.in_function]
    assert not wrong, (
        f"move these to the top of the file; if that makes a cycle, split a module:\n{lines(wrong)}"
    )


def test_import_graph_is_acyclic() -> None:
    loop = cycle(all_imports(ROOT))
    assert not loop, f"import cycle: {' -> '.join(loop)}"


def private_names(root: Path) -> list[str]:
    """Names with an underscore in front that a module imports from another one."""
    return [
        f"{module} imports {alias.name}"
        for module, path in modules(root).items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("jaxte"))
        for alias in node.names
        if alias.name.startswith("_")
    ]


def test_no_private_name_is_imported() -> None:
    assert not private_names(ROOT), f"give these names without an underscore: {private_names(ROOT)}"


def test_islpy_and_jax_are_imported_only_where_they_may_be() -> None:
    wrong = restricted(all_imports(ROOT))
    allowed = "; ".join(
        f"{library} only in {', '.join(sorted(RESTRICTED[library]))}" for library in RESTRICTED
    )
    assert not wrong, f"{allowed}:\n{lines(wrong)}"


@pytest.mark.parametrize(
    ("files", "check", "finding"),
    [
        ({"stray.py": ""}, unlisted, "stray"),
        ({"lang/expr.py": "from jaxte.tensors.tensor import Tensor"}, upward, "lang.expr imports tensors.tensor"),
        ({"lang/expr.py": "from jaxte.tensors import tensor"}, upward, "lang.expr imports tensors.tensor"),
        ({"lang/expr.py": "from . import functions"}, upward, "lang.expr imports lang.functions"),
        ({"lang/expr.py": "from jaxte import sum"}, upward, "lang.expr imports __init__"),
        ({"autodiff/terms/scalar.py": "from ...testing import x"}, upward, "autodiff.terms.scalar imports testing"),
        ({"autodiff/terms/scalar.py": "from .zeros import x"}, upward, "scalar imports autodiff.terms.zeros"),
        ({"autodiff/__init__.py": "from ..testing import x"}, upward, "autodiff imports testing"),
        ({"lower/code/a.py": "import jaxte.lower.program.plan as p"}, upward, "lower.code.a imports lower.program.plan"),
        ({"lang/expr.py": "if TYPE_CHECKING:\n    from ..tensors.tensor import T"}, upward, "expr imports tensors.tensor"),
        ({"ops/a.py": "from .b import x", "ops/b.py": "from . import a"}, cycle, "ops.a, ops.b"),
        ({"lang/expr.py": "from jaxte.lang.nodes import _show"}, private_names, "lang.expr imports _show"),
        ({"tensors/tensor.py": "import islpy as isl"}, restricted, "tensors.tensor imports islpy"),
        ({"tensors/tensor.py": "from jax.numpy import exp"}, restricted, "tensors.tensor imports jax"),
    ],
)  # fmt: skip
def test_the_checks_find(tmp_path: Path, files: dict, check, finding: str) -> None:
    """Each check on a package with one fault, lest they pass because they see nothing."""
    write(tmp_path, files)
    found = check(tmp_path if check in (unlisted, private_names) else all_imports(tmp_path))
    assert finding in ", ".join(sorted({str(entry) for entry in found}))


def test_the_checks_accept(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from jaxte.lang.expr import x\nfrom . import ops",
        "lang/expr.py": "from .errors import E\nimport numpy as np",
        "sets/domain.py": "import islpy",
        "lower/program/plan.py": "from jaxte.lower.views import scope\nfrom ..rules import select",
        "lower/views/scope.py": "from ...lang.expr import x",
        "bridge/functions/function.py": "def f():\n    import jax\n    from jaxlib import xla",
    }
    write(tmp_path, files)
    found = all_imports(tmp_path)
    assert not unlisted(tmp_path) and not upward(found) and not cycle(found) and not restricted(found)
    assert [entry.target for entry in found if entry.in_function] == ["jax", "jaxlib"]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
