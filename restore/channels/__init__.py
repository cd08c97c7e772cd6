"""Damage: what is known of it, its models, and tasks that do it to images; importing this does not load torch."""

from restore.channels.damage import Channel as Channel
from restore.channels.damage import Damage as Damage
from restore.channels.damage import Observed as Observed
from restore.channels.damage import Occlusion as Occlusion
from restore.channels.drawing import Holes as Holes
from restore.channels.drawing import Patch as Patch
from restore.channels.flips import BitFlip as BitFlip
from restore.channels.noise import GaussianNoise as GaussianNoise
from restore.channels.noise import SaltAndPepper as SaltAndPepper
from restore.channels.specks import Specks as Specks
from restore.channels.task import Damaged as Damaged
from restore.channels.task import Task as Task
from restore.channels.task import parse_task as parse_task
