"""The data sets known by name. A new one is one file like mnist.py, and one line here."""

from restore.data.sets.caltech101_silhouettes import CALTECH101_SILHOUETTES
from restore.data.sets.cbcl import CBCL
from restore.data.sets.mnist import MNIST
from restore.data.sets.named import NamedSet
from restore.data.sets.omniglot import OMNIGLOT
from restore.data.sets.patterns import BARS_AND_STRIPES, SHIFTING_BAR
from restore.data.sets.shapes import SHAPES

_SETS = (MNIST, CALTECH101_SILHOUETTES, CBCL, OMNIGLOT, BARS_AND_STRIPES, SHIFTING_BAR, SHAPES)

NAMED_SETS: dict[str, NamedSet] = {known.name: known for known in _SETS}
