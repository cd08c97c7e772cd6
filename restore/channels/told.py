"""The channel that a caller's words about damage stand for."""

from __future__ import annotations

from restore.channels.asymmetric_flip import AsymmetricFlip
from restore.channels.bit_flip import BitFlip
from restore.channels.contract import Channel, Told
from restore.channels.gaussian_noise import GaussianNoise
from restore.channels.occlusion import Occlusion
from restore.channels.salt_and_pepper import SaltAndPepper
from restore.errors import UsageError


def channel_of(told: Told, *, grey: bool) -> Channel:
    """The channel of binary or grey images with this damage.

    Grey ones go through Gaussian noise, then salt and pepper, and then pixels are hidden.

    Raises:
        UsageError: if a level is out of range, or binary images have flips and Gaussian noise.

    >>> channel_of(Told(p=0.1), grey=False)
    BitFlip(probability=0.1)
    """
    p = 0.0 if told.p is None else told.p
    if isinstance(p, tuple):
        noise: Channel = AsymmetricFlip(*p)
    elif grey:
        # Also without impulses: a black pixel seen exactly is then known to be 0, and not only close to it.
        noise = SaltAndPepper(p, GaussianNoise(0.0 if told.sigma is None else told.sigma))
    elif told.sigma is None:
        noise = BitFlip(p)
    elif told.p is None:
        noise = GaussianNoise(told.sigma)
    else:
        raise UsageError("black and white images have flips (p) or Gaussian noise (sigma), not both; give one")
    return noise if told.hidden is None else Occlusion(told.hidden, noise=noise)
