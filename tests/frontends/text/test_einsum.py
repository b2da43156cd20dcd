"""``te.einsum`` beside ``numpy.einsum``, and random patterns beside advanced indexing of JAX, with their gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxte as te

RNG = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


A, B, C, S = drawn(4, 5), drawn(5, 6), drawn(4, 6), drawn(4, 4)


@pytest.mark.parametrize(
    ("pattern", "operands"),
    [
        ("ij,jk->ik", (A, B)),
        ("ij,jk", (A, B)),
        ("ij, jk -> ki", (A, B)),
        ("ii->i", (S,)),
        ("ii", (S,)),
        ("...ij,...jk->...ik", (drawn(2, 1, 4, 5), drawn(3, 5, 6))),
        ("ij,ik,kl->jl", (A, C, drawn(6, 2))),
        ("i,j->ij", (A[:, 0], B[0])),
        ("time->emit", (drawn(2, 3, 4, 5),)),
    ],
)
def test_patterns_of_numpy(pattern: str, operands: tuple[np.ndarray, ...]) -> None:
    close(te.einsum(pattern, *operands), np.einsum(pattern, *operands))


images = drawn(2, 8, 8, 3)


@pytest.mark.parametrize(
    ("pattern", "operands", "options", "expected"),
    [
        ("i k, k j → i j", (A, B), {}, A @ B),
        ("i k, k j + i j -> i j", (A, B, C), {}, A @ B + C),
        ("i k, k j - i j -> i j", (A, B, C), {}, A @ B - C),
        ("-i k, k j -> i j", (A, B), {}, -A @ B),
        ("exp(i k - max[k](i k)), k j -> i j", (A, A, B), {}, np.exp(A - A.max(1, keepdims=True)) @ B),
        ("b (h p) (w q) c -> b h w c", (images,), dict(reduce="max", p=2, q=2), images.reshape(2, 4, 2, 4, 2, 3).max((2, 4))),
        ("b (h p) (w q) c -> b (h w) (p q c)", (images,), dict(p=2, q=4), images.reshape(2, 4, 2, 2, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(2, 8, 24)),
        ("h w -> h w c", (A,), dict(c=3), np.repeat(A[..., None], 3, -1)),
        ("i j -> i", (A,), dict(reduce="mean"), A.mean(1)),
        ("i j -> i", (A,), dict(reduce="logsumexp"), jax.nn.logsumexp(A, axis=1)),
        ("i j -> i", (A,), dict(reduce="prod"), A.prod(1)),
        ("i j -> i", (A,), dict(reduce="argmin"), A.argmin(1)),
        ("i k + k j -> i j", (A, B), dict(reduce="max"), (A[:, :, None] + B[None]).max(1)),
        ("(end-i) j -> i j", (A,), {}, A[::-1]),
        ("(i//2) j -> i j", (A,), {}, np.repeat(A, 2, 0)),
        ("(i%5) -> i", (A[0],), dict(i=12), A[0][np.arange(12) % 5]),
        ("i 0 -> i", (A,), {}, A[:, 0]),
        ("i j -> i 1 j", (A,), {}, A[:, None]),
        ("i, -> i", (A[0], 2.0), {}, 2 * A[0]),
        ("i (i+1) -> i", (A,), {}, np.diag(A, 1)),
        ("(2*t+k) -> t", (np.arange(9, dtype="float32"),), dict(k=3, reduce="max"), [2.0, 4.0, 6.0, 8.0]),
        ("... d -> ...", (images,), {}, images.sum(-1)),
        ("i 1 j -> i j", (A[:, None],), {}, A),
        ("i 1 -> i", (A,), {}, A[:, 1]),
        ("i j -> i (j 2) 3", (A,), {}, np.repeat(np.repeat(A, 2, 1)[..., None], 3, -1)),
        ("b (h 2) (w 2) c -> b h w c", (images,), dict(reduce="max"), images.reshape(2, 4, 2, 4, 2, 3).max((2, 4))),
        ("0.5 * i k * k j - 1 -> i j", (A, B), {}, 0.5 * A @ B - 1),
        ("1 - i j / 4 -> i j", (A,), {}, 1 - A / 4),
        ("(i d - j d)**2 -> i j", (A, A), {}, ((A[:, None] - A) ** 2).sum(-1)),
        ("exp(-0.5 * (i - j)**2), j -> i", (A[0], B[0], B[1]), {}, np.exp(-0.5 * (A[0][:, None] - B[0]) ** 2) @ B[1]),
        ("((t+k))**-2 -> t", (np.arange(1, 7, dtype="float32"),), dict(k=2), [sum(n**-2.0 for n in (t, t + 1)) for t in range(1, 6)]),
        ("i (t+k)**2 -> i t", (A,), dict(k=2), A[:, :-1] ** 2 + A[:, 1:] ** 2),
        ("maximum(2 * i j, 0.5) -> i j", (A,), {}, np.maximum(2 * A, 0.5)),
    ],
)  # fmt: skip
def test_patterns_beyond(
    pattern: str, operands: tuple[Any, ...], options: dict[str, Any], expected: Any
) -> None:
    close(te.einsum(pattern, *operands, **options), expected)


@pytest.mark.parametrize(
    ("pad", "mode"), [("zero", "constant"), ("edge", "edge"), ("wrap", "wrap"), ("reflect", "reflect")]
)
@pytest.mark.parametrize("stride", [1, 2])
def test_padding(pad: str, mode: Any, stride: int) -> None:
    x, w = drawn(2, 9), drawn(3)

    def expected(x: Any) -> Any:
        wide = jnp.pad(x, ((0, 0), (1, 1)), mode=mode)
        return sum(w[k] * wide[:, k : k + 9] for k in range(3))[:, ::stride]

    def own(x: Any) -> Any:
        return te.einsum(f"b ({stride}*t+k-1), k -> b t", x, w, pad=pad)

    close(own(x), expected(x))
    close(jax.grad(lambda x: (own(x) ** 2).sum())(x), jax.grad(lambda x: (expected(x) ** 2).sum())(x))


def test_every_transformation() -> None:
    x, w = drawn(10), drawn(3)

    def own(x: Any) -> Any:
        return te.einsum("(t+k), k -> t", x, w)

    def plain(x: Any) -> Any:
        return jnp.convolve(x, w[::-1], mode="valid")

    for transform in (jax.jit, jax.jacrev, jax.jacfwd, jax.hessian, lambda f: jax.vmap(f, 1)):
        args = drawn(10, 4) if transform not in (jax.jit, jax.jacrev, jax.jacfwd, jax.hessian) else x
        close(transform(lambda x: own(x) ** 3)(args), transform(lambda x: plain(x) ** 3)(args))


def test_tensors_and_sizes_that_are_symbols() -> None:
    n = te.var("n")
    X, w = te.placeholder((n, 5), name="X"), te.placeholder((3,), name="w")
    y = te.einsum("(t+k) c, k -> t c", X, w)
    assert te.formula(y) == "einsum[t, c] = sum over k of X[t + k, c] * w[k]  (t < n - 2, c < 5, k < 3)"
    closest = te.comm_reducer(lambda a, b: te.minimum(te.abs(a), te.abs(b)), float("inf"), "closest")
    close(te.einsum("i j -> i", A, reduce=closest), np.abs(A).min(1))


def random_case(seed: int) -> tuple[str, list[np.ndarray], Any, int]:
    """A pattern, its operands, and the same function by advanced indexing."""
    rng = np.random.default_rng(seed)
    sizes = {a: int(rng.integers(1, 5)) for a in "abcd"}
    terms: list[list[tuple[str, Any, int]]] = [
        [(a, (lambda e, a=a: e[a]), sizes[a]) for a in sizes]
    ]  # each axis stands alone once
    for _ in range(int(rng.integers(1, 3))):
        indices = []
        for _ in range(int(rng.integers(1, 3))):
            p, q = rng.permutation(list(sizes))[:2]
            s, d, c = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(0, 3))
            written, index = [
                (f"({s}*{p} + {d}*{q} + {c})", lambda e, p=p, q=q, s=s, d=d, c=c: s * e[p] + d * e[q] + c),
                (f"({p}//{s} + {c})", lambda e, p=p, s=s, c=c: e[p] // s + c),
                (f"(({p} + {c}) % {s})", lambda e, p=p, s=s, c=c: (e[p] + c) % s),
            ][int(rng.integers(0, 3))]
            grid = dict(zip(sizes, np.indices(tuple(sizes.values())), strict=True))
            indices.append((written, index, int(np.max(index(grid))) + 1 + int(rng.integers(0, 2))))
        terms.append(indices)
    kept = [a for a in sizes if rng.random() < 0.5]
    text = ", ".join(" ".join(i[0] for i in t) for t in terms) + " -> " + " ".join(rng.permutation(kept))
    result = text.split("-> ")[1].split()
    operands = [rng.normal(size=[i[2] for i in t]).astype("float32") for t in terms]

    def plain(*arrays: Any) -> Any:
        grid = dict(zip(sizes, np.indices(tuple(sizes.values())), strict=True))
        product: Any = 1.0
        for array, indices in zip(arrays, terms, strict=True):
            product = product * array[tuple(index(grid) for _, index, _ in indices)]
        summed = jnp.sum(product, axis=tuple(n for n, a in enumerate(sizes) if a not in kept))
        return jnp.transpose(summed, [kept.index(a) for a in result])

    return text, operands, plain, seed


@pytest.mark.parametrize("seed", range(6))
def test_random_patterns(seed: int) -> None:
    text, operands, plain, _ = random_case(seed)
    close(te.einsum(text, *operands), plain(*operands))
    placed = [te.placeholder(x.shape, name=f"x{n}") for n, x in enumerate(operands)]
    close(te.interpret(te.einsum(text, *placed), dict(zip(placed, operands, strict=True))), plain(*operands))
    numbers = tuple(range(len(operands)))
    for own, expected in zip(
        jax.grad(lambda *x: te.einsum(text, *x).sum(), numbers)(*operands),
        jax.grad(lambda *x: plain(*x).sum(), numbers)(*operands),
        strict=True,
    ):
        close(own, expected)


def test_functions_of_several_scalars() -> None:
    a, b = np.float32([[1, 5], [-3, 2]]), np.float32([2, 4])
    np.testing.assert_array_equal(te.einsum("maximum(i j, j) -> i j", a, b), np.maximum(a, b))
    np.testing.assert_array_equal(te.einsum("maximum(i j, 0), j -> i", a, b), np.maximum(a, 0) @ b)
    np.testing.assert_array_equal(te.einsum("clip(i j - j, 0, 2) -> i j", a, b), np.clip(a - b, 0, 2))
