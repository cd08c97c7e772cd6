"""Limits for the numbers in a prior's files, each with its reason.

Today's priors are far below them. A file may be damaged, or made on purpose, and computing with a huge number takes
memory and time before anything else notices.
"""

from __future__ import annotations

# Bytes of a weights file or a graph, which is read into memory as a whole. The largest published one has two million.
FILE = 2**32

# Bytes of a bundle or an archive of numbers, and of what is packed in it, which may be numbers of one byte.
PACKED = FILE // 4

# Bytes of a card. Published cards have 2,000.
CARD_BYTES = 2**20

# Characters of a text in the header of a weights file. Published headers have 1,200 bytes.
TEXT = 4096

# Units of a layer, including pixels: an image of 1024x1024. Arrays of this size are made besides the tensors.
WIDEST = 2**20

# Layers of units; a solver goes through all of them at every step.
LAYERS = 16

# Modes of a prior; every image is compared with each. Published priors have up to 5,000.
MODES = 100_000

# Starts per image; and the bytes of the distances between their solutions, starts x starts x pixels in single
# precision. Published priors have up to 21 starts.
MOST_STARTS = 1000
DISTANCES = 2**31

# Iterations per start; at a tenth of a millisecond each they take minutes. Published priors have up to 5,000.
ITERATIONS = 1_000_000

# The temperature; fitted ones lie near 1.2.
COLDEST, HOTTEST = 0.01, 100

# Overlap of tiles; its square multiplies the cost of an image.
OVERLAP = 16

# Images that a graph takes at a time; its memory is proportional. The exporter sets at most 16.
IMAGES_AT_ONCE = 4096

# Any finite number, where none is too large.
FINITE = 1e300
