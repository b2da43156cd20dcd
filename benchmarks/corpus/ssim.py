"""s = (2 mx my + c1)(2 cov + c2) / ((mx^2 + my^2 + c1)(vx + vy + c2)), moments by sum_km g[k] g[m] x[b, i + k, j + m]"""

from jax import lax

import jaxte as te
from harness.inputs import uniform

TITLE = "SSIM, window 11x11"
SIZES = {
    "full": dict(b=8, n=256),
    "quick": dict(b=2, n=64),
    "tiny": dict(b=1, n=13),
}
K, C1, C2 = 11, 1e-4, 9e-4
TOLERANCE = 1e-3
ABOVE = {"bytes": (3.0, "taps are slices that XLA counts each; one pass over memory for each of two axes")}


def inputs(b, n):
    return uniform(b, n, n), uniform(b, n, n), uniform(K)


def score(mx, my, xx, yy, xy):
    above = (2 * mx * my + C1) * (2 * (xy - mx * my) + C2)
    return above / ((mx * mx + my * my + C1) * (xx - mx * mx + yy - my * my + C2))


def expression(x, y, g):
    k, m = te.reduce_axis((0, K), "k"), te.reduce_axis((0, K), "m")
    shape = (x.shape[0], x.shape[1] - K + 1, x.shape[2] - K + 1)

    def window(image, name):
        def element(b, i, j):
            return te.sum(g[k] * g[m] * image(b, i + k, j + m), axis=(k, m))

        return te.compute(shape, element, name)

    mx, my = window(lambda *at: x[at], "mx"), window(lambda *at: y[at], "my")
    xx = window(lambda *at: x[at] * x[at], "xx")
    yy = window(lambda *at: y[at] * y[at], "yy")
    xy = window(lambda *at: x[at] * y[at], "xy")
    return te.compute(shape, lambda *at: score(*(t[at] for t in (mx, my, xx, yy, xy))), "s")


def idiomatic(x, y, g):
    def along(images, kernel, window):
        return lax.conv_general_dilated(images, kernel.reshape(window), (1, 1), "VALID")

    def blurred(image):
        return along(along(image[:, None], g, (1, 1, K, 1)), g, (1, 1, 1, K))[:, 0]

    return score(*map(blurred, (x, y, x * x, y * y, x * y)))
