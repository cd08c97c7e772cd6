"""Channels: how an image was damaged. Each corrupts and scores with the same parameters."""

from restore.channels.bit_flip import BitFlip
from restore.channels.contract import Channel
from restore.channels.occlusion import Occlusion

__all__ = ["BitFlip", "Channel", "Occlusion"]
