"""Channels: models of damage. Each corrupts and scores with the same parameters; importing them does not load torch."""

from restore.channels.bit_flip import BitFlip as BitFlip
from restore.channels.contract import Channel as Channel
from restore.channels.contract import Damaged as Damaged
from restore.channels.contract import Task as Task
from restore.channels.gaussian_noise import GaussianNoise as GaussianNoise
from restore.channels.holes import Holes as Holes
from restore.channels.occlusion import Occlusion as Occlusion
from restore.channels.occlusion import Patch as Patch
from restore.channels.registry import channel_of as channel_of
from restore.channels.registry import parse_task as parse_task
from restore.channels.salt_and_pepper import SaltAndPepper as SaltAndPepper
from restore.channels.specks import Specks as Specks
from restore.channels.task import Chain as Chain
from restore.channels.task import EachPixel as EachPixel
