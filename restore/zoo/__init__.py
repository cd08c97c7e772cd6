"""Priors on disk: find, describe, load and save them."""

from restore.zoo.automatic import PARTS_PRIOR as PARTS_PRIOR
from restore.zoo.automatic import candidates as candidates
from restore.zoo.automatic import leave_out as leave_out
from restore.zoo.automatic import preferred as preferred
from restore.zoo.automatic import readable as readable
from restore.zoo.automatic import reader as reader
from restore.zoo.card import with_facts as with_facts
from restore.zoo.search import find as find
from restore.zoo.search import folders as folders
from restore.zoo.search import published_folder as published_folder
from restore.zoo.search import user_folder as user_folder
from restore.zoo.store import CARD as CARD
from restore.zoo.store import GRAPH as GRAPH
from restore.zoo.store import WEIGHTS as WEIGHTS
from restore.zoo.store import TrainedPrior as TrainedPrior
from restore.zoo.store import assembled as assembled
from restore.zoo.store import card_of as card_of
from restore.zoo.store import describe as describe
from restore.zoo.store import light_ground as light_ground
from restore.zoo.store import load as load
from restore.zoo.store import read as read
from restore.zoo.store import save as save
