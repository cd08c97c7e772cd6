"""Channels: how an image was damaged. Each corrupts and scores with the same parameters."""

from restore.channels.bit_flip import BitFlip
from restore.channels.contract import Channel
from restore.channels.gaussian_noise import GaussianNoise
from restore.channels.occlusion import Occlusion
from restore.channels.salt_and_pepper import SaltAndPepper

__all__ = ["BitFlip", "Channel", "GaussianNoise", "Occlusion", "SaltAndPepper"]
