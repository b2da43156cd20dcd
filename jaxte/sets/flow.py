"""Dataflow of programs with loops as expressions: what each read sees, piece by piece, and what was added since.

What isl finds of a program (:mod:`jaxte.sets.accesses`) is asked here, and written as index expressions and conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import islpy as isl

from jaxte.lang.expr import FALSE, ZERO, Axis, Expr, call, conjunction
from jaxte.lang.operators import OR
from jaxte.lang.walk import substitute
from jaxte.sets.accesses import Access, Content, Dependences, Source, cases, unnamed
from jaxte.sets.affine import normal
from jaxte.sets.isl_text import aff_expr, constraint_expr, whole


class Flow:
    """The sources of ``reads`` among ``writes`` and ``additions``.

    Raises:
        Exhausted: isl takes more operations than one program may.
    """

    def __init__(
        self, reads: Sequence[Access], writes: Sequence[Access], additions: Sequence[Access]
    ) -> None:
        found = Dependences(reads, writes, additions)
        self._by_label, self._accesses, self._added = found.by_label, found.accesses, found.added
        self._maps = found.maps
        self._contents: dict[object, list[Content]] = {}

    # --- questions

    def unwritten(self, read: Access) -> dict[Axis, int] | None:
        """A point at which ``read`` finds no write before it."""
        rest = self._accesses.domain(read)
        for label, found in self._maps[read.label].items():
            if label not in self._added:
                rest = rest.subtract(found.domain())
        return self._point(rest, read)

    def outside(self, access: Access, shape: Sequence[Expr]) -> tuple[dict[Axis, int], int] | None:
        """A point at which ``access`` is outside of an array of this ``shape``, and along which of its axes."""
        if self._accesses.access(access).range().is_subset(self._accesses.box(self._element_axes(shape))):
            return None
        for place, (index, extent) in enumerate(zip(access.indices, shape, strict=True)):
            for wrong in (index < ZERO, index >= extent):
                point = self._point(self._accesses.domain(access, wrong), access)
                if point is not None:
                    return point, place
        return None

    def labels(self, read: Access) -> list[str]:
        """The labels of what ``read`` sees."""
        return list(self._maps[read.label])

    def has_additions(self, read: Access) -> bool:
        return any(label in self._added for label in self._maps[read.label])

    def content(self, read: Access) -> Content:
        """What ``read`` sees, at its own axes."""
        if read not in self._contents:
            points = self._accesses.domain(read)
            self._contents[read] = [
                self._content(read.axes, points, self._maps[read.label], (read,), shared=False)
            ]
        return self._contents[read][0]

    def shared_contents(
        self, reads: Sequence[Access], shape: Sequence[Expr], around: int = 0
    ) -> list[Content]:
        """What the elements of one array hold for ``reads``, for as many of them at once as see the same; of the others each on its own.

        Args:
            around: the number of loops around all of them in an iteration of which they see that.
        """
        key = (*reads, around)
        if key not in self._contents:
            self._contents[key] = self._shared_contents(reads, shape, around)
        return self._contents[key]

    def _shared_contents(self, reads: Sequence[Access], shape: Sequence[Expr], around: int) -> list[Content]:
        groups: list[tuple[list[Access], dict[str, isl.Map], isl.Set]] = []
        alone: list[Content] = []
        for read in reads:
            by_element = self._by_element(read, around)
            if by_element is None:
                alone.append(self.content(read))
                continue
            elements = self._element_set(read, around)
            for n, (members, known, everywhere) in enumerate(groups):
                both = everywhere.intersect(elements)
                if _agree(known, by_element, both):
                    groups[n] = ([*members, read], _joined(known, by_element), everywhere.union(elements))
                    break
            else:
                groups.append(([read], by_element, elements))
        found = []
        for members, maps, elements in groups:
            loops = (Axis(a.name, 0, a.extent) for a in members[0].axes[:around])
            axes = (*loops, *self._element_axes(shape))
            content = self._content(axes, elements.coalesce(), maps, tuple(members), shared=True)
            found.append(replace(content, around=around))
        return [*found, *alone]

    def nested_contents(self, reads: Sequence[Access], shape: Sequence[Expr]) -> list[Content]:
        """As :meth:`shared_contents`, but a read of more elements than one before it has a content of its own, of which the other is a part.

        What a statement reads of some elements and writes to others is then no circle: the mirrored half of a symmetric matrix.
        """
        groups: list[tuple[list[Access], dict[str, isl.Map], isl.Set]] = []
        alone: list[Content] = []
        for read in reads:
            maps = self._by_element(read)
            if maps is None:
                alone.append(self.content(read))
                continue
            elements = self._element_set(read)
            for members, theirs, everywhere in groups:
                if elements.is_subset(everywhere) and _agree(theirs, maps, elements):
                    members.append(read)
                    break
            else:
                groups.append(([read], maps, elements))
        found: list[Content] = []
        for n, (members, maps, elements) in enumerate(groups):
            axes, rest = self._element_axes(shape), elements
            parts: list[tuple[Content, Expr]] = []
            for content, (_, theirs, everywhere) in zip(found, groups[:n], strict=True):
                both = everywhere.intersect(rest)
                if not both.is_empty() and _agree(theirs, maps, both):
                    parts.append((content, self._condition(both.gist(elements), axes)))
                    rest = rest.subtract(everywhere)
            own = {label: m.intersect_domain(rest) for label, m in maps.items()}
            own = {label: m for label, m in own.items() if not m.is_empty()}
            content = self._content(axes, rest.coalesce(), own, tuple(members), shared=True)
            domain = self._condition(elements.gist(self._accesses.box(axes)), axes)
            found.append(replace(content, domain=domain, parts=tuple(parts)))
        return [*found, *alone]

    @staticmethod
    def _element_axes(shape: Sequence[Expr]) -> tuple[Axis, ...]:
        return tuple(Axis(f"a{n}", 0, extent) for n, extent in enumerate(shape))

    # --- from isl

    def _content(
        self,
        axes: tuple[Axis, ...],
        domain: isl.Set,
        maps: Mapping[str, isl.Map],
        reads: tuple[Access, ...],
        shared: bool,
    ) -> Content:
        written: list[Source] = []
        added: list[Source] = []
        for label in sorted(maps):
            write, relation = self._by_label[label], maps[label]
            if label in self._added:
                added += self._additions(write, relation, axes, domain)
            else:
                written += self._pieces(write, relation, axes, domain)
        box = self._accesses.box(axes)
        return Content(
            axes, self._condition(domain.gist(box), axes), tuple(written), tuple(added), reads, shared
        )

    def _pieces(
        self, write: Access, relation: isl.Map, axes: Sequence[Axis], domain: isl.Set
    ) -> list[Source]:
        found = []
        for piece, values in cases(relation):
            nodes = self._nodes(axes)
            at = tuple(normal(aff_expr(values.get_at(n), nodes)) for n in range(len(write.axes)))
            found.append(Source(write, at, self._condition(piece.gist(domain), axes)))
        return found

    def _additions(
        self, write: Access, relation: isl.Map, axes: Sequence[Axis], domain: isl.Set
    ) -> list[Source]:
        found: list[Source] = []
        for basic in unnamed(relation).compute_divs().make_disjoint().get_basic_maps():
            part = isl.Map.from_basic_map(basic)
            if part.is_single_valued():
                found += self._pieces(write, part, axes, domain)
                continue
            found.append(self._sum(write, part, axes, domain))
        return found

    def _sum(self, write: Access, part: isl.Map, axes: Sequence[Axis], domain: isl.Set) -> Source:
        free = [Axis(a.name, a.lo, a.hi, reduction=True) for a in write.axes]
        at: list[Expr] = list(free)
        context_set = isl.Map.from_domain_and_range(domain, self._accesses.box(write.axes))
        for n in range(len(write.axes)):
            single = part.project_out(isl.dim_type.out, n + 1, len(write.axes) - n - 1)
            single = single.project_out(isl.dim_type.out, 0, n)
            if not single.is_single_valued():
                continue
            pieces = cases(single)
            if len(pieces) == 1:
                at[n] = normal(aff_expr(pieces[0][1].get_at(0), self._nodes(axes)))
                graph = single.insert_dims(isl.dim_type.out, 0, n)
                graph = graph.add_dims(isl.dim_type.out, len(write.axes) - n - 1)
                context_set = context_set.intersect(graph)
        table = dict(zip(free, at, strict=True))
        rest = part.gist(context_set).wrap().flatten()
        holds = self._condition(rest.compute_divs(), [*axes, *free])
        summed = tuple(a for a, own in zip(free, at, strict=True) if own is a)
        before = part.domain().gist(domain)
        return Source(write, tuple(at), self._condition(before, axes), summed, substitute(holds, table))

    def _condition(self, points: isl.Set, axes: Sequence[Axis]) -> Expr:
        nodes = self._nodes(axes)
        result: Expr = FALSE
        pieces = points.compute_divs().coalesce().remove_redundancies()
        for piece in pieces.compute_divs().get_basic_sets():  # isl forgets divisions as it unites pieces
            result = call(
                OR, result, conjunction([constraint_expr(c, nodes) for c in piece.get_constraints()])
            )
        return result

    def _nodes(self, axes: Sequence[Axis]) -> dict[str, Expr]:
        nodes: dict[str, Expr] = {name: size for size, name in self._accesses.sizes.items()}
        return nodes | {f"in{n}": axis for n, axis in enumerate(axes)}

    def _by_element(self, read: Access, around: int = 0) -> dict[str, isl.Map] | None:
        """The sources of ``read`` by element of its array, in each iteration of the loops around; None where reads of one element see different ones."""
        access = self._accesses.access(read, around)
        found = {}
        for label, own in self._maps[read.label].items():
            relation = unnamed(own)
            by_element = access.reverse().apply_range(relation)
            if (
                not access.apply_range(by_element)
                .intersect_domain(self._accesses.domain(read))
                .is_equal(relation)
            ):
                return None
            found[label] = by_element.coalesce()
        return found

    def _element_set(self, read: Access, around: int = 0) -> isl.Set:
        return self._accesses.access(read, around).range()

    def _point(self, points: isl.Set, access: Access) -> dict[Axis, int] | None:
        if points.is_empty():
            return None
        point = (points if self._accesses.sizes else points.lexmin()).sample_point()
        coordinates = range(len(access.axes))
        return {access.axes[n]: whole(point.get_coordinate_val(isl.dim_type.set, n)) for n in coordinates}


def _agree(a: Mapping[str, isl.Map], b: Mapping[str, isl.Map], where: isl.Set) -> bool:
    """Whether the elements in ``where`` have the same sources."""
    if where.is_empty():
        return True
    for label in {*a, *b}:
        first, second = (m[label].intersect_domain(where) if label in m else None for m in (a, b))
        if first is None or second is None:
            one = first if second is None else second
            if one is not None and not one.is_empty():
                return False
        elif not first.is_equal(second):
            return False
    return True


def _joined(a: Mapping[str, isl.Map], b: Mapping[str, isl.Map]) -> dict[str, isl.Map]:
    both = {label: a[label].union(b[label]).coalesce() for label in a if label in b}
    return {**a, **b, **both}
