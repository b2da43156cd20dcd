"""The forms that :mod:`random_meanings` draws from: parts of arrays, new arrays, numbers, and functions that are called."""

from __future__ import annotations

Shape = tuple[int, ...]
N = 3
V, M, F = (N,), (N, N), (N * N,)
PARTS: dict[tuple[Shape, Shape], tuple[str, ...]] = {  # views, and copies, of an array of the one shape in the other
    (V, V): ("{a}", "{a}[::-1]", "{a}[:]", "np.flip({a})", "{a}.ravel()", "{a}[::-1].ravel()", "{a}.reshape(3, 1)[:, 0]", "{a}[::-1].reshape(-1)", "{a}.copy()"),
    (M, V): ("{a}[{i}]", "{a}[:, {i}]", "{a}.T[{i}]", "{a}[{i}, ::-1]", "{a}[::-1, {i}]", "{a}[-1]", "{a}.ravel()[::4]", "{a}.T.reshape(9)[2:5]", "{a}.ravel()[3:6]",
             "{a}.T.ravel()[:3]", "{a}[::2].reshape(6)[::2]", "{a}[:, :2].reshape(-1)[1:4]", "{a}[{i}].copy()"),
    (M, M): ("{a}", "{a}.T", "{a}[::-1]", "{a}[:, ::-1]", "{a}.T[::-1]", "{a}.reshape(9)[::-1].reshape(3, 3)", "{a}.T.reshape(3, 3)", "np.transpose({a})", "{a}.T.T", "{a}.T.copy()",
             "{a}[:, ::-1].reshape(3, 3)", "np.flip({a}, 0)", "np.einsum('ij->ji', {a})"),
    (M, F): ("{a}.ravel()", "{a}.reshape(9)", "{a}.T.ravel()", "{a}.T.reshape(-1)", "{a}[::-1].reshape(9)", "{a}.flatten()", "{a}[::-1, ::-1].reshape(9)"),
    (F, M): ("{a}.reshape(3, 3)", "{a}[::-1].reshape(3, 3)", "{a}.reshape(3, 3).T"),
    (F, V): ("{a}[::4]", "{a}[6:3:-1]", "{a}[{i}:{i} + 3]", "{a}.reshape(3, 3)[{i}]", "{a}[:3]"),
    (F, F): ("{a}", "{a}[::-1]", "{a}.reshape(3, 3).T.ravel()", "{a}[::-1].ravel()"),
}  # fmt: skip
COPIES = (
    "copy",
    "flatten",
    ".T.r",
    "].r",
    "[m",
)  # written by few, since te.loops refuses elements of a copy
NEW: dict[Shape, tuple[str, ...]] = {
    V: ("0.5 * {0} + {0}", "np.sin({0})", "{0} * {q}", "{1} @ {0}", "{1}.sum(axis=0)", "{1}.sum(1)", "np.zeros(3)", "np.ones(3)", "np.where({0} > 0, {0}, 0.1 * {0})", "np.roll({0}, 1)",
        "np.concatenate([{0}[1:], {0}[:1]])", "-{0}", "{0} - {1}[{i}]", "np.zeros_like({0})", "np.array([{q}, 1, 2])", "{0}[[2, 0, 1]]", "{0}[m]", "np.maximum({0}, {q})", "0.1 * n"),
    M: ("0.5 * {1} + {1}", "{1} * {0}", "{1} + {0}[:, None]", "np.outer({0}, {0})", "0.1 * {1} @ {1}", "np.zeros((3, 3))", "np.eye(3)", "{1}.T * 0.5", "np.zeros_like({1}.T)", "{1}[m]",
        "np.stack([{0}, {0}, {0}])", "{1} - {1}.T", "np.tril({1})", "np.where({1} > 0, {1}, {0})", "np.array([{0}, {0}, {0}])", "1.0 * {1}.T"),
    F: ("0.5 * {2} + {2}", "np.cos({2})", "np.arange(9) * {q}", "{2} * {q}"),
}  # fmt: skip
NUMBERS = (
    "{0}[{i}]", "{1}[{i}, {j}]", "{0} @ {0}", "{1}.sum()", "0.5 * {q} + {0}[{i}]", "{q} - {1}[{i}, {i}]", "max({0}[{i}], {q})", "{0}.max()", "{0}[m[{i}]]", "np.tanh({q})",
    "{0}[{i}] if {0}[{j}] > 0 else {q}", "n[{i}] * 0.1", "n[{i}] // 2 + n[{j}] % 3", "{0}[0] * ({0}[1] > 0)", "len({0}) / 7", "np.trace({1})", "k / 7", "{0}[k]", "{i} / 3 + {j} // 2",
    "sum({0}[s] * {1}[s, {i}] for s in range(3))", "np.array([{0}[s] ** 2 for s in range(3)]).sum()", "{q} if k > 0 else {0}[{i}]", "{0}[{i}:].sum()", "{0}[:{i}].sum()", "abs({0}[{i}]) // 1",
    "{0}[{i}] % 0.7", "-k % 3", "(2 * k - 3) // 2 / 4", "int({q}) + float(k)", "k ** 2 / 3", "{1}[{i}].min()", "np.argmax({0}) / 3", "{0}[({i} + k) % 3]", "{0}[-1 - {i}]", "{0}[n[{i}] % 3]",
    "{q} and {0}[{i}]", "0.5 * ({q} > 0 or {0}[{i}] > 0)", "min({0})", "np.mean({1}[:, {i}])", "{1}[{i}] @ {1}[:, {j}]", "({0} > 0).sum() / 4", "{1}.var()", "np.sqrt(1 + {0} @ {0})",
)  # fmt: skip
FUNCTIONS = {  # what each needs of its first argument, and what it returns
    "halve": ("def halve(v, c=0.5):", ["v *= c"], None),
    "bump": ("def bump(v):", ["v[0] += 1.0", "return v"], "same"),
    "tail": ("def tail(v):", ["return v[::-1]"], "same"),
    "fresh": ("def fresh(v):", ["w = 0.5 * v", "w[0] = 2.0", "return w"], "same"),
    "renamed": ("def renamed(v):", ["v = v + 1.0", "v[0] = 0.0", "return v"], "same"),
    "looped": ("def looped(v):", ["w = np.zeros_like(v)", "for s in range(3):", "    w[s] = v[2 - s] * 0.5", "return w"], "same"),
    "chosen": ("def chosen(v, p):", ["if p > 0:", "    return v * 0.5", "return v + 1.0"], "same"),
    "pair": (
        "def pair(v):",
        ["v[0] *= 0.5", "return v[0], 2.0 * v"],
        "pair",
    ),
    "each": (
        "def each(v, u=None):",
        ["if u is None:", "    u = np.zeros_like(v)", "for s in range(3):", "    u[s] += v[s]", "return u"],
        "same",
    ),
    "outer_x": ("def outer_x(v):", ["x[0] = 0.5 * x[1]", "return v * 2.0"], "same"),
}  # fmt: skip
