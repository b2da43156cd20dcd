"""A convolutional network on the scikit-learn digits, written in index notation, every gradient from jaxte.

Prints the test accuracy, how far the gradients are from those of ``jax.grad`` of the same network in plain JAX, the
time of a training step beside plain JAX's, and the adjoint of the first convolution as formula and as code.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from sklearn.datasets import load_digits
from tqdm import tqdm

import jaxte as te

CHANNELS, CLASSES = (16, 32), 10
BATCH, EPOCHS, RATE = 64, 25, 2e-3
LEAST_ACCURACY, LARGEST_DIFFERENCE = 0.97, 1e-5


# --- the network in index notation


def conv3x3(X, W, b, name):
    """A 3x3 convolution with zeros around the image, and a bias."""
    images, channels, height, width = X.shape
    c, i, j = te.reduce_axis((0, channels), "c"), te.reduce_axis((0, 3), "i"), te.reduce_axis((0, 3), "j")

    def body(n, o, y, x):
        inside = (y + i >= 1) & (y + i <= height) & (x + j >= 1) & (x + j <= width)
        return te.sum(X[n, c, y + i - 1, x + j - 1] * W[o, c, i, j], axis=[c, i, j], where=inside)

    Y = te.compute((images, W.shape[0], height, width), body, name)
    return te.compute(Y.shape, lambda n, o, y, x: Y[n, o, y, x] + b[o], f"{name}_bias")


def relu(X):
    return te.compute(X.shape, lambda *i: te.relu(X[i]), "relu")


def max_pool2x2(X):
    images, channels, height, width = X.shape
    p, q = te.reduce_axis((0, 2), "p"), te.reduce_axis((0, 2), "q")
    return te.compute(
        (images, channels, height // 2, width // 2),
        lambda n, c, y, x: te.max(X[n, c, 2 * y + p, 2 * x + q], axis=[p, q], ties="first"),
        "pool",
    )


def dense(X, W, b):
    """A dense layer that reads the image as it is: no flattening."""
    images, channels, height, width = X.shape
    c, y, x = (
        te.reduce_axis((0, channels), "c"),
        te.reduce_axis((0, height), "y"),
        te.reduce_axis((0, width), "x"),
    )
    Z = te.compute(
        (images, W.shape[0]), lambda n, o: te.sum(X[n, c, y, x] * W[o, c, y, x], axis=[c, y, x]), "dense"
    )
    return te.compute(Z.shape, lambda n, o: Z[n, o] + b[o], "logits")


def cross_entropy(Z, target):
    """The mean of ``-log softmax`` at the targets, with the maximum subtracted first."""
    images, classes = Z.shape
    k = te.reduce_axis((0, classes), "k")
    m = te.compute((images,), lambda n: te.max(Z[n, k], axis=k), "m")
    s = te.compute((images,), lambda n: te.sum(te.exp(Z[n, k] - m[n]), axis=k), "s")
    logp = te.compute(Z.shape, lambda n, o: Z[n, o] - m[n] - te.log(s[n]), "logp")
    n, o = te.reduce_axis((0, images), "n"), te.reduce_axis((0, classes), "o")
    total = te.compute((), lambda: te.sum(target[n, o] * logp[n, o], axis=[n, o]), "total")
    return te.compute((), lambda: -total[()] / images, "loss")


def network(params, images):
    hidden = max_pool2x2(relu(conv3x3(images, params["W1"], params["b1"], "conv1")))
    hidden = max_pool2x2(relu(conv3x3(hidden, params["W2"], params["b2"], "conv2")))
    return dense(hidden, params["W3"], params["b3"])


@te.function
def logits(params, images):
    return network(params, images)


@te.function
def loss(params, images, targets):
    return cross_entropy(network(params, images), targets)


# --- the same in plain JAX


def plain_loss(params, images, targets):
    def layer(x, W, b):
        y = lax.conv_general_dilated(x, W, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        y = jax.nn.relu(y + b[:, None, None])
        return lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

    hidden = layer(layer(images, params["W1"], params["b1"]), params["W2"], params["b2"])
    z = jnp.einsum("ncyx,ocyx->no", hidden, params["W3"]) + params["b3"]
    return -jnp.sum(targets * jax.nn.log_softmax(z)) / len(z)


# --- training


def initial_params(rng):
    def he(*shape):
        return (rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[1:]))).astype("float32")

    first, second = CHANNELS
    kernels = {"W1": he(first, 1, 3, 3), "W2": he(second, first, 3, 3), "W3": he(CLASSES, second, 2, 2)}
    biases = {"b1": np.zeros(first), "b2": np.zeros(second), "b3": np.zeros(CLASSES)}
    return jax.tree.map(lambda a: jnp.asarray(a, "float32"), kernels | biases)


def training_step(value_and_grad):
    """A step of Adam: from parameters, the two moments and their count to the next ones."""

    @jax.jit
    def step(state, images, targets):
        params, first, second, count = state
        value, grads = value_and_grad(params, images, targets)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
        rate = RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, first, second)
        return (params, first, second, count), value

    return step


def load(rng):
    """Images as (N, 1, 8, 8) in 0 to 1, and one-hot targets; a fifth is kept for testing."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).reshape(-1, 1, 8, 8).astype("float32")
    targets = np.eye(CLASSES, dtype="float32")[labels]
    order = rng.permutation(len(images))
    train, test = np.split(order, [len(order) * 4 // 5])
    return (images[train], targets[train]), (images[test], targets[test])


def train(step, params, data, rng):
    images, targets = data
    zeros = jax.tree.map(jnp.zeros_like, params)
    state = params, zeros, zeros, jnp.zeros((), "float32")
    batches = len(images) // BATCH
    with tqdm(total=EPOCHS * batches, desc="training", unit="step") as bar:
        for _ in range(EPOCHS):
            for batch in np.split(rng.permutation(len(images))[: batches * BATCH], batches):
                state, value = step(state, images[batch], targets[batch])
                bar.update()
            bar.set_postfix(loss=f"{float(value):.4f}")
    return state


# --- the report


def largest_difference(points, images, targets):
    """The largest norm of a difference between gradients, over the norm, at several parameters."""
    ours, theirs = jax.jit(te.grad(te.function(loss))), jax.jit(jax.grad(plain_loss))
    differences = [
        jax.tree.map(
            lambda a, b: float(jnp.linalg.norm((a - b).ravel()) / jnp.linalg.norm(b.ravel())),
            ours(params, images, targets),
            theirs(params, images, targets),
        )
        for params in points
    ]
    return float(np.max(jax.tree.leaves(differences)))


def times(steps, state, images, targets, rounds=100):
    """The median time of each of ``steps`` in ms, measured in turn."""
    taken = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            start = time.perf_counter()
            jax.block_until_ready(step(state, images, targets))
            taken[name].append(time.perf_counter() - start)
    return {name: 1e3 * float(np.median(t)) for name, t in taken.items()}


def first_adjoint():
    """The first convolution alone, with the adjoints of its image and of its kernel."""
    X, W = te.placeholder((BATCH, 1, 8, 8), name="X"), te.placeholder((CHANNELS[0], 1, 3, 3), name="W")
    b = te.placeholder((CHANNELS[0],), name="b")
    Y = conv3x3(X, W, b, "conv1")
    return te.differentiate(Y, [X, W], head=te.placeholder(Y.shape, name="H"))


def main():
    rng = np.random.default_rng(0)
    data, (test_images, test_targets) = load(rng)
    start = initial_params(rng)
    step = training_step(te.value_and_grad(te.function(loss)))
    state = train(step, start, data, rng)

    print("\nThe adjoints of the first convolution, of its image and of its kernel:\n")
    adjoints = first_adjoint()
    for adjoint in adjoints:
        print(" ", te.formula(adjoint))
    print("\nand as code:\n")
    print(te.source(adjoints))

    difference = largest_difference([start, state[0]], *data)
    images, targets = (a[:BATCH] for a in data)
    plain = training_step(jax.value_and_grad(plain_loss))
    jax.block_until_ready(plain(state, images, targets))
    ms = times({"jaxte": step, "plain JAX": plain}, state, images, targets)
    found = np.argmax(logits(state[0], test_images), axis=1)
    accuracy = float(np.mean(found == np.argmax(test_targets, axis=1)))

    print(f"time per step: jaxte {ms['jaxte']:.2f} ms, plain JAX {ms['plain JAX']:.2f} ms", end="")
    print(f" ({ms['plain JAX'] / ms['jaxte']:.2f} of its speed)")
    print(f"largest relative difference of a gradient from jax.grad: {difference:.1e}")
    print(f"test accuracy: {100 * accuracy:.2f} %")
    if accuracy < LEAST_ACCURACY or not difference <= LARGEST_DIFFERENCE:
        sys.exit(f"expected at least {100 * LEAST_ACCURACY} % and at most {LARGEST_DIFFERENCE}")


if __name__ == "__main__":
    main()
