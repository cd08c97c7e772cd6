"""Channels: models of damage. Each corrupts and scores with the same parameters; importing them does not load torch."""

from restore.channels.bit_flip import BitFlip
from restore.channels.contract import Channel, Damaged, Task
from restore.channels.gaussian_noise import GaussianNoise
from restore.channels.holes import Holes
from restore.channels.occlusion import Occlusion, Patch
from restore.channels.registry import channel_of, parse_task
from restore.channels.salt_and_pepper import SaltAndPepper
from restore.channels.task import Chain, EachPixel

__all__ = [
    "BitFlip",
    "Chain",
    "Channel",
    "Damaged",
    "EachPixel",
    "GaussianNoise",
    "Holes",
    "Occlusion",
    "Patch",
    "SaltAndPepper",
    "Task",
    "channel_of",
    "parse_task",
]
