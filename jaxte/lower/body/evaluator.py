"""Evaluation of one body: every node becomes the code of an array over named dimensions.

The evaluator is a loop over generators, one for each node under way: a generator yields the (node, scope) whose
value it needs next and returns its own value. Thus depth needs no recursion. Nodes that are used more than once get a
statement of their own, as parts of long lines do (``statements.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jaxte.lang.budget import VISITS, VISITS_OF_A_NODE
from jaxte.lang.expr import Call, Const, Expr, Read, Reduce, as_expr
from jaxte.lang.graphs import identical
from jaxte.lang.limits import FEW_POSITIONS, LEVELS
from jaxte.lang.operators import ADD, COMPARISONS, POWER, SELECT, SUBTRACT
from jaxte.lang.rules import applied
from jaxte.lang.walk import postorder, reads_of
from jaxte.lower.arrays.elementwise import Kept, Name, number
from jaxte.lower.arrays.views import Pad
from jaxte.lower.body.assignment import Assignment, Report, Shared, Task
from jaxte.lower.body.positions import Positions
from jaxte.lower.code.broadcasting import apply_steps
from jaxte.lower.code.constants import numeral
from jaxte.lower.code.spec import Refusal
from jaxte.lower.code.vocabulary import Value, View
from jaxte.lower.match.empty_sums import guarded_reads
from jaxte.lower.rewrites.table import ROOTS, Place, Rewrite
from jaxte.lower.views.affine import reorder
from jaxte.lower.views.mixed_radix import digits_of, digits_wanted, frames_wanted
from jaxte.lower.views.rotated import ROTATIONS, rotation_of
from jaxte.lower.views.scope import Scope, overlapping
from jaxte.sets.index_forms import is_index
from jaxte.sets.intervals import plus, surely_inside
from jaxte.tensors.tensor import Tensor


class Body(Positions):
    """The state of lowering one tensor: statements so far, values of nodes, and what is noted for ``te.explain``.

    Attributes:
        sliced: the tensors that are read as slices without zeros around them.
    """

    def __init__(self, own: Assignment, shared: Shared) -> None:
        super().__init__(own, shared)
        self.name = own.name
        self.tensors = own.tensors
        self.axes = own.axes
        self.in_tiles = own.in_tiles
        self.padded = own.padded
        self.sliced = own.sliced
        self.unread = own.unread
        self.faces = own.faces
        self.policy = shared.policy
        self.report = Report()
        self._rules = shared.rules
        self._padded_names: dict[Tensor, str] = {}
        self._guarded: frozenset[Read] = frozenset()  # reads at data whose guards keep them in range
        self._root: Expr | None = None  # what is evaluated
        self._values: dict[tuple[Expr, Scope], Value] = {}
        self._uses: dict[Expr, int] = {}
        self._leaks: set[Expr] = set()
        self._visits = 0
        self._most_visits = VISITS

    def read_by(self, names: Mapping[Tensor, str]) -> None:
        """Reads tensors by other ``names`` from now on."""
        self.tensors = names

    def evaluate(self, root: Expr, scope: Scope) -> Value:
        """The value of ``root``, a body over the dimensions of ``scope``."""
        self._guarded = guarded_reads(root)
        self._root = root
        self.survey(root)
        self._most_visits += VISITS_OF_A_NODE * len(postorder(root))
        stack = [(root, scope, self._evaluate(root, scope))]
        answer: Value | None = None
        while stack:
            node, at, task = stack[-1]
            try:
                request = task.send(answer)  # type: ignore[arg-type]
            except StopIteration as finished:
                stack.pop()
                answer = self._values[node, at] = self._named_if_shared(node, finished.value)
                continue
            answer = self._values.get(request)
            if answer is None:
                stack.append((*request, self._evaluate(*request)))
        assert answer is not None
        return answer

    def rewrite(self, expr: Expr, rewrites: Sequence[Rewrite], scope: Scope) -> Expr:
        """``expr`` by each of ``rewrites`` in turn, noted where they change it."""
        place = Place(self.axes, scope, self.policy, self.in_tiles)
        found = applied(expr, rewrites, place)
        self.report.fired(place.fired)
        return found

    def read_in_slices(self, tensors: Iterable[Tensor]) -> None:
        """``tensors`` are read as slices: XLA would compute them again for each element of the result that they are in."""
        self.sliced += tuple(tensors)

    def is_kept_in_range(self, read: Read, scope: Scope) -> bool:
        """Whether guards keep ``read``, which is at positions that are data, in range wherever it counts."""
        return read in self._guarded or read in scope.hits

    def leaks(self, node: Expr) -> bool:
        """Whether a read below ``node`` can leave its tensor where no guard holds it."""
        if node not in self._uses:
            self.survey(node)
        return node in self._leaks

    def survey(self, root: Expr) -> None:
        """Counts the uses of each node and finds the reads that need a guard."""
        for node in postorder(root):
            if node in self._uses:
                continue
            self._uses[node] = 0
            for child in node.children:
                self._uses[child] = self._uses.get(child, 0) + 1
            if not self._leaks.isdisjoint(node.children) or (
                isinstance(node, Read) and not surely_inside(node)
            ):
                self._leaks.add(node)

    @property
    def is_in_pieces(self) -> bool:
        """Whether the nodes were evaluated in so many pieces that no more are made: pieces of pieces are many more than the conditions that cut them."""
        spent = self._visits > self._most_visits
        if spent:
            self.report.refuse("concatenate", "pieces of pieces take more work than a body has a budget of")
        return spent

    # --- nodes

    def _named_if_shared(self, node: Expr, value: Value) -> Value:
        """The ``value`` of ``node``, under a name where several nodes are made of it."""
        several = self._uses.get(node, 0) > 1 and not isinstance(node, Read) and not node.weak
        return self.named(value) if several else value

    def _evaluate(self, node: Expr, scope: Scope) -> Task:
        self._visits += 1
        match node:
            case Const(value):
                if type(value) in (int, float):
                    return numeral(value, node.kind)  # type: ignore[arg-type]
                return Value(number(value), (), node.kind, literal=True)
            case Read():
                return (yield from self._read(node, scope))
            case Reduce():
                return (yield from self._rules.reduce(self, node, scope))
            case Call(op) if op is SELECT:
                return (yield from self._rules.select(self, node, scope))
            case Call(op, (a, b)) if op in COMPARISONS and a.weak and b.weak and is_index(a) and is_index(b):
                return self.condition(node, scope)
            case Call(op, (Expr() as a, Read() as b)) if op in COMPARISONS and self.fits(a, b.dtype, scope):
                position = self.index_value(scope.index(a), scope, b.dtype)
                return self.combine(op, [position, (yield b, scope)], node.kind, scope)
            case Call(op, (operand,)) if op.name == "cast" and operand.weak and is_index(operand):
                return self.index_value(scope.index(operand), scope, op.result)
            case _ if node.weak and node.dtype == "int32" and is_index(node):
                return self.index_value(scope.index(node), scope, "int32")
        assert isinstance(node, Call), node
        if node.op is POWER and (roots := self.rewrite(node, [ROOTS], scope)) is not node:
            self.survey(roots)
            return (yield roots, scope)
        if node is self._root and node.op in (ADD, SUBTRACT):
            total = yield from self._rules.total(self, node, scope)
            if total is not None:
                return total
        if node.op is POWER:
            power = yield from self._rules.power(self, node, scope)
            if power is not None:
                return power
        operands = []
        for arg in node.args:
            operands.append((yield arg, scope))
        addends = [v for v in operands if node.op is not ADD or not (v.literal and v.number == 0)]
        if len(addends) == 1 < len(operands) and addends[0].kind == node.kind:
            return addends[0]  # the other is a choice that gives nothing in this piece
        return self.combine(node.op, operands, node.kind, scope)

    def _read(self, node: Read, scope: Scope) -> Task:
        if any(reads_of(index) for index in node.indices):
            return (yield from self._rules.gather(self, node, scope))
        found = self.view_of(node, scope)
        if isinstance(found, Refusal):
            self.report.refuse("view", found.reason)
            return (yield from self._rules.gather(self, node, scope))
        return found

    def view_of(self, node: Read, scope: Scope, level: int = 0) -> Value | Refusal:
        """An affine read as a view of its tensor, or as a stack of views where two indices overlap a little.

        Or as one of these over the digits of a dimension, or over a dimension that is rotated.
        """
        dim = overlapping([node], scope.order, scope, FEW_POSITIONS)
        if dim is not None:
            parts = [self.view_of(node, at, level + 1) for at in scope.at_each(dim)]
            values = [part for part in parts if isinstance(part, Value)]
            if len(values) == len(parts):
                return self.stack(values, dim, scope)
        found = self._view(node, scope)
        if isinstance(found, Value) or level >= LEVELS:
            return found
        other = self._over_other_dimensions(node, scope, level + 1)
        return found if other is None else other

    def _over_other_dimensions(self, node: Read, scope: Scope, level: int) -> Value | None:
        """The read over what one of the dimensions is made of, put together again; None where that has no view either."""
        indices = [scope.index(i) for i in node.indices]
        turned = None if ROTATIONS in self.policy.without else rotation_of(indices)
        if turned is not None:
            inner = scope.replace(turned.dim, turned.meaning, [turned.own], deeper=0)
            if not identical([inner.index(i) for i in node.indices], [turned.of(i) for i in indices]):
                return None  # an index that goes around with another digit, of which this one is the lower
            value = self.view_of(node, inner, level)
            if isinstance(value, Refusal):
                return None
            return self.with_steps(value, *turned.undone(value.dims))
        wanted = digits_wanted(indices) or frames_wanted(indices)
        if wanted is None:
            return None
        digits = digits_of(*wanted)
        value = self.view_of(node, scope.in_digits(digits), level)
        return None if isinstance(value, Refusal) else self.with_steps(value, *digits.joined(value.dims))

    def _view(self, node: Read, scope: Scope) -> Value | Refusal:
        found: View | Refusal = Refusal("")
        if not scope.direct and node.tensor in self.padded:
            found = scope.view(node, self.padded[node.tensor])
        source = "" if isinstance(found, Refusal) else self._padded_name(node.tensor)
        if isinstance(found, Refusal):
            found, source = scope.view(node), self.tensors[node.tensor]
        if isinstance(found, Refusal):
            return found
        here = frozenset(found.dims)
        dims = [d for d in scope.order if d in here]
        steps = (*found.steps, *reorder(found.dims, dims))
        in_one = "" if self.policy.facts.tests_pads else node.dtype
        code = apply_steps(self.tensor(node.tensor, source), steps, in_one)
        return Value(code, tuple(dims), (node.dtype, False))

    def tensor(self, tensor: Tensor, called: str = "") -> Name:
        """``tensor`` as a node; ``called`` names another array of its dtype in its place, of the same shape or padded."""
        extents = tuple(map(as_expr, tensor.shape))
        own = called or self.tensors[tensor]
        if own == self._padded_names.get(tensor):
            extents = tuple(plus(e, *w) for e, w in zip(extents, self.padded[tensor], strict=True))
        return Name(own, extents, (tensor.dtype, False))

    def _padded_name(self, tensor: Tensor) -> str:
        """What ``tensor`` with zeros around it is called."""
        if tensor not in self._padded_names:
            widths = tuple((as_expr(low), as_expr(high)) for low, high in self.padded[tensor])
            padded = Kept(apply_steps(self.tensor(tensor), [Pad(widths)]))
            self._padded_names[tensor] = self.shared(padded, f"{self.tensors[tensor]}_padded").identifier
        return self._padded_names[tensor]
