"""Images and sounds: dm_pix, jaxwt and librosax."""

from __future__ import annotations

import dm_pix as pix
import jax
import jax.numpy as jnp
import jaxwt
import librosax

from wild.registry import Call, loss, normal, uniform


@loss("dm_pix", "structural similarity")
def pix_ssim() -> Call:
    return lambda a, b: 1 - pix.ssim(a, b), (uniform(96, 96, 3), uniform(96, 96, 3, seed=1))


@loss("dm_pix", "a Gaussian blur")
def pix_blur() -> Call:
    def f(x, y):
        return jnp.mean((pix.gaussian_blur(x, 2.0, 13) - y) ** 2)

    return f, (uniform(128, 128, 3), uniform(128, 128, 3, seed=1))


@loss("dm_pix", "norms of overlapping patches")
def pix_patches() -> Call:
    def f(x, y):
        a, b = (
            pix.extract_patches(i[None], (1, 5, 5, 1), (1, 2, 2, 1), (1, 1, 1, 1), padding="VALID")
            for i in (x, y)
        )
        return jnp.mean(jnp.sqrt(jnp.sum((a - b) ** 2, -1) + 1e-4))

    return f, (uniform(64, 64, 3), uniform(64, 64, 3, seed=1))


@loss("dm_pix", "a rotation with interpolation, and its structural errors")
def pix_rotation() -> Call:
    return lambda x, y: jnp.mean(pix.simse(pix.rotate(x, 0.3), y)), (
        uniform(96, 96, 3),
        uniform(96, 96, 3, seed=1),
    )


@loss("dm_pix", "an affine warp with interpolation")
def pix_affine() -> Call:
    matrix = jnp.float32([[0.9, 0.1, 3.0], [-0.1, 1.1, -2.0], [0, 0, 1]])

    def f(x, y):
        return jnp.mean((pix.affine_transform(x, matrix, mode="nearest") - y) ** 2)

    return f, (uniform(96, 96, 3), uniform(96, 96, 3, seed=1))


@loss("dm_pix", "colours: hue, saturation and contrast")
def pix_colours() -> Call:
    def f(x):
        own = pix.adjust_contrast(pix.adjust_saturation(pix.adjust_hue(x, 0.1), 1.2), 0.8)
        return jnp.mean(own**2)

    return f, (uniform(128, 128, 3, low=0.1, high=0.9),)


@loss("dm_pix", "a flow that is followed, by elastic positions")
def pix_elastic() -> Call:
    key = jax.random.key(0)

    def f(x):
        return jnp.mean(pix.elastic_deformation(key, x, 3.0, 4.0) ** 2)

    return f, (uniform(64, 64, 3),)


@loss("dm_pix", "space to depth, and back in another order")
def pix_depth() -> Call:
    def f(x):
        return jnp.mean(pix.depth_to_space(jnp.tanh(pix.space_to_depth(x, 4))[..., ::-1], 4) ** 2)

    return f, (uniform(128, 128, 3),)


@loss("jaxwt", "soft thresholds of wavelets in one dimension")
def wavelet_denoising() -> Call:
    def f(x, y):
        low, *high = jaxwt.wavedec(x, "db4", level=4, mode="reflect")
        shrunk = [jnp.sign(h) * jnp.maximum(jnp.abs(h) - 0.1, 0) for h in high]
        return jnp.mean((jaxwt.waverec([low, *shrunk], "db4")[..., : y.shape[-1]] - y) ** 2)

    return f, (normal(4, 2048), normal(4, 2048, seed=1))


@loss("jaxwt", "wavelets of images, their absolute values")
def wavelet_images() -> Call:
    def f(x):
        low, *high = jaxwt.wavedec2(x, "db2", level=2, mode="reflect")
        return jnp.mean(low**2) + sum(jnp.mean(jnp.abs(h)) for level in high for h in level)

    return f, (normal(4, 128, 128),)


@loss("librosax", "the loss of spectrograms of sounds")
def spectrograms() -> Call:
    def f(x, y):
        own, other = (jnp.abs(librosax.stft(s, n_fft=512, hop_length=128)) for s in (x, y))
        return jnp.mean((own - other) ** 2)

    return f, (normal(4, 8192), normal(4, 8192, seed=1))


@loss("librosax", "a mel spectrogram in decibels")
def mel_spectrogram() -> Call:
    def f(x):
        own = librosax.feature.melspectrogram(y=x, sr=16000, n_fft=512, hop_length=128, n_mels=40)
        return jnp.mean(librosax.power_to_db(own) ** 2)

    return f, (normal(8192),)
