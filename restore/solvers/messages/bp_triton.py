"""The kernels of belief propagation for GPUs, in Triton: what `bp_kernel.c` does, by the same formulas.

Messages are odds, and products of odds keep their exponents in integers; see there. A tile is a few whole rows of
edges, so that its messages are read once: from registers they are multiplied into its visible units, and what these
send replaces them. What tiles send is multiplied in registers, too, from one tile to the next; nothing waits for
another tile.

An iteration takes a launch for spans of tiles of all images, one for the hidden beliefs, and one that sees which images
have settled. One program that does all iterations of an image was no faster (`benchmarks/gpu.md`).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from restore.solvers.loop import ASKED
from restore.solvers.messages.bp_kernel import KIND_CODES, OFF, KernelResult, KernelSettings
from restore.units import log_one_plus_exp

# Edges of a tile for each warp: eight of a thread, counted in docs/gpu.md.
EDGES = 256

# Hidden units that a program updates, and spans whose products it multiplies at once.
HIDDEN = 16
SPANS = tl.constexpr(64)

# Warps that a multiprocessor shall have, so that others compute while one waits for memory: the fewer images, the more
# programs share each.
BUSY = 24

# Belief odds are cut at 2 to this power and its inverse, as in the C kernel.
ODDS_EXPONENT = tl.constexpr(71)

MAX = tl.constexpr(KIND_CODES["max"])
MIXED = tl.constexpr(KIND_CODES["mixed"])

LOG_2 = math.log(2)


@triton.jit
def _times(mantissa, exponent, other, more):  # type: ignore[no-untyped-def]
    """The product of two positive numbers with exponents apart; what is left lies in [1, 2)."""
    bits = (mantissa * other).to(tl.int32, bitcast=True)
    kept = ((bits & 0x007FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
    return kept, exponent + more + (bits >> 23) - 127


@triton.jit
def _larger(one, other):  # type: ignore[no-untyped-def]
    return tl.maximum(one, other)


@triton.jit
def _cut(mantissa, exponent):  # type: ignore[no-untyped-def]
    """Convert to a float, clipped so that sums of messages and beliefs stay finite."""
    within = tl.minimum(tl.maximum(exponent, -ODDS_EXPONENT), ODDS_EXPONENT)
    power = ((within + 127) << 23).to(tl.float32, bitcast=True)
    return tl.where(within == exponent, mantissa * power, power)


@triton.jit
def _message(weight, belief, back, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
    """The odds that a sender with this belief sends, without the message that came back over the edge."""
    if KIND == MAX:
        return tl.maximum(weight * belief, back) / tl.maximum(belief, back)
    return (weight * belief + back) / (belief + back)


@triton.jit
def _span(  # type: ignore[no-untyped-def]
    weights, messages, senders, own, powers, means, first, last, ROWS: tl.constexpr, COLS: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """One iteration of some tiles; returns the products of what they send, and how far a mean of them has moved.

    The pointers are those of one image.
    """
    at = tl.arange(0, COLS)
    product, exponents = tl.full((ROWS, COLS), 1.0, tl.float32), tl.full((ROWS, COLS), 0, tl.int32)
    moved = tl.full((ROWS,), 0.0, tl.float32)
    for tile in range(first, last):
        rows = tile * ROWS + tl.arange(0, ROWS)
        edge = rows[:, None] * COLS + at[None, :]
        weight, back = tl.load(weights + edge), tl.load(messages + edge)
        into = _message(weight, senders[None, :], back, KIND)
        mantissa, exponent = tl.reduce((into, tl.full((ROWS, COLS), 0, tl.int32)), 1, _times)
        mantissa, exponent = _times(mantissa, exponent, tl.load(own + rows), tl.load(powers + rows))
        belief = _cut(mantissa, exponent)
        mean = belief / (1 + belief)
        moved = tl.maximum(moved, tl.abs(mean - tl.load(means + rows)))
        # Every thread has read the old means before one writes new ones.
        tl.debug_barrier()
        tl.store(means + rows, mean)
        if KIND == MIXED:
            sent = tl.where(belief[:, None] > 1, weight, 1.0)
        else:
            sent = _message(weight, belief[:, None], into, KIND)
        tl.store(messages + edge, sent)
        product, exponents = _times(product, exponents, sent, 0)
    product, exponents = tl.reduce((product, exponents), 0, _times)
    return product, exponents, tl.reduce(moved, 0, _larger)


@triton.jit
def tiles_once(  # type: ignore[no-untyped-def]
    weights, messages, hidden, own_v, powers_v, means_v, products, exponents, moves, active, height, tiles, length,
    spans, ROWS: tl.constexpr, COLS: tl.constexpr, KIND: tl.constexpr, HIDDEN: tl.constexpr,
):  # fmt: skip
    """Messages of a span of tiles of an image that has not settled, there and back."""
    image = tl.program_id(0).to(tl.int64)
    span = tl.program_id(1)
    if tl.load(active + image) == 0:
        return
    row = image * height
    at = tl.arange(0, COLS)
    product, more, moved = _span(
        weights, messages + row * COLS, tl.load(hidden + image * COLS + at), own_v + row, powers_v + row,
        means_v + row, span * length, tl.minimum(tiles, (span + 1) * length), ROWS, COLS, KIND,
    )  # fmt: skip
    part = (image * spans + span) * COLS + at
    tl.store(products + part, product)
    tl.store(exponents + part, more)
    tl.store(moves + image * (spans + COLS // HIDDEN) + span, moved)


@triton.jit
def hidden_once(  # type: ignore[no-untyped-def]
    hidden, own_h, powers_h, sums, sum_powers, means_h, products, exponents, moves, active, width, spans,
    HIDDEN: tl.constexpr,
):  # fmt: skip
    """Beliefs of some hidden units of an image that has not settled."""
    image = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    if tl.load(active + image) == 0:
        return
    unit = block * HIDDEN + tl.arange(0, HIDDEN)
    at = image * width + unit
    mantissa, exponent = tl.load(own_h + at), tl.load(powers_h + at)
    for first in range(0, spans, SPANS):
        span = first + tl.arange(0, SPANS)[:, None]
        index = (image * spans + span) * width + unit[None, :]
        there = span < spans
        parts = tl.load(products + index, mask=there, other=1.0), tl.load(exponents + index, mask=there, other=0)
        product, more = tl.reduce(parts, 0, _times)
        mantissa, exponent = _times(mantissa, exponent, product, more)
    belief = _cut(mantissa, exponent)
    mean = belief / (1 + belief)
    moved = tl.reduce(tl.abs(mean - tl.load(means_h + at)), 0, _larger)
    tl.debug_barrier()
    tl.store(hidden + at, belief)
    tl.store(sums + at, mantissa)
    tl.store(sum_powers + at, exponent)
    tl.store(means_h + at, mean)
    tl.store(moves + image * (spans + width // HIDDEN) + spans + block, moved)


@triton.jit
def settled(moves, active, iterations, residuals, count, tol, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    """Mark an image that has converged in the last iteration."""
    image = tl.program_id(0).to(tl.int64)
    if tl.load(active + image) == 0:
        return
    at = tl.arange(0, COUNT)
    moved = tl.reduce(tl.load(moves + image * count + at, mask=at < count, other=0.0), 0, _larger)
    tl.store(iterations + image, tl.load(iterations + image) + 1)
    tl.store(residuals + image, moved)
    tl.store(active + image, (moved > tol).to(tl.int32))


@triton.jit
def closed(  # type: ignore[no-untyped-def]
    weights, messages, hidden, own_v, powers_v, means_v, sums_v, sum_powers_v, ratios, ratio_powers, height, tiles,
    length, spans, ROWS: tl.constexpr, COLS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """The visible beliefs that answer the last hidden ones, and what the edges of a span of tiles add to log Z."""
    image = tl.program_id(0).to(tl.int64)
    span = tl.program_id(1)
    row = image * height
    at = tl.arange(0, COLS)
    sender = tl.load(hidden + image * COLS + at)[None, :]
    product, power = tl.full((ROWS, COLS), 1.0, tl.float32), tl.full((ROWS, COLS), 0, tl.int32)
    for tile in range(span * length, tl.minimum(tiles, (span + 1) * length)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        edge = rows[:, None] * COLS + at[None, :]
        back = tl.load(messages + row * COLS + edge)
        into = _message(tl.load(weights + edge), sender, back, KIND)
        mantissa, exponent = tl.reduce((into, tl.full((ROWS, COLS), 0, tl.int32)), 1, _times)
        own = tl.load(own_v + row + rows), tl.load(powers_v + row + rows)
        mantissa, exponent = _times(mantissa, exponent, own[0], own[1])
        belief = _cut(mantissa, exponent)
        tl.store(means_v + row + rows, belief / (1 + belief))
        tl.store(sums_v + row + rows, mantissa)
        tl.store(sum_powers_v + row + rows, exponent)
        product, power = _times(product, power, (back + sender) / (back * (1 + sender)), 0)
    product, power = tl.reduce((product, power), 0, _times)
    product, power = tl.reduce((product, power), 0, _times)
    tl.store(ratios + image * spans + span, product)
    tl.store(ratio_powers + image * spans + span, power)


@triton.jit
def paired(  # type: ignore[no-untyped-def]
    weights, messages, hidden, means_v, pairs, images, height, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """P(v = h = 1) of the edges of a tile, added up over images."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, COLS)
    edge = rows[:, None] * COLS + at[None, :]
    weight = tl.load(weights + edge)
    total = tl.load(pairs + edge)
    for _ in range(images):
        both = weight * tl.load(hidden + at)[None, :]
        total += tl.load(means_v + rows)[:, None] * (both / (both + tl.load(messages + edge)))
        messages, hidden, means_v = messages + height * COLS, hidden + COLS, means_v + height
    tl.store(pairs + edge, total)


def shapes(weights: Tensor) -> tuple[int, int, int]:
    """The rows and hidden units of a tile of a machine with weights (D, H), and the warps that share it."""
    columns = max(HIDDEN, triton.next_power_of_2(weights.shape[1]))
    rows = max(1, EDGES // columns)
    return rows, columns, max(1, rows * columns // EDGES)


def memory(weights: Tensor, pairs: bool) -> int:
    """Bytes that an image takes: its messages and products; pairs take as much for all images."""
    rows, columns, _ = shapes(weights)
    height = _padded(weights, rows)
    return 4 * (1 + pairs) * height * columns + 32 * (height + columns)


def run(
    weights: Tensor,
    visible_fields: Tensor,
    hidden_fields: Tensor,
    settings: KernelSettings,
    *,
    pairs: bool,
) -> KernelResult:
    """Solve a batch on the device of the weights; arguments as those of `bp_kernel.run`."""
    (visible, hidden) = weights.shape
    batch = len(visible_fields)
    device = weights.device
    rows, width, warps = shapes(weights)
    height = _padded(weights, rows)
    processors = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
    busy = -(-BUSY * processors // warps)
    tiles = height // rows
    length = max(1, tiles * batch // busy)
    spans = -(-tiles // length)

    def room(*shape: int, dtype: torch.dtype = torch.float32, value: float = 0) -> Tensor:
        return torch.full(shape, value, dtype=dtype, device=device)

    odds = pad(weights.exp(), (0, width - hidden, 0, height - visible), value=1.0).contiguous()
    own_v, powers_v = _odds(pad(visible_fields, (0, height - visible), value=OFF))
    own_h, powers_h = _odds(pad(hidden_fields, (0, width - hidden), value=OFF))
    senders, receivers = _as_floats(own_h, powers_h), _as_floats(own_v, powers_v)
    means_v, means_h = receivers / (1 + receivers), senders / (1 + senders)
    messages = room(batch, height, width, value=1.0)
    sums = room(batch, width)
    sum_powers = room(batch, width, dtype=torch.int32)
    iterations = room(batch, dtype=torch.int32)
    residuals = room(batch)
    tile: dict[str, Any] = {"ROWS": rows, "COLS": width, "num_warps": warps}
    limits = min(settings.max_iter, 2**31 - 1), float(settings.tol)
    count = spans + width // HIDDEN
    products = room(batch, spans, width)
    exponents = room(batch, spans, width, dtype=torch.int32)
    moves = room(batch, count)
    active = room(batch, dtype=torch.int32, value=1)
    for iteration in range(limits[0]):
        tiles_once[(batch, spans)](
            odds, messages, senders, own_v, powers_v, means_v, products, exponents, moves, active, height, tiles,
            length, spans, KIND=KIND_CODES[settings.kind], HIDDEN=HIDDEN, **tile,
        )  # fmt: skip
        hidden_once[(batch, width // HIDDEN)](
            senders, own_h, powers_h, sums, sum_powers, means_h, products, exponents, moves, active, width, spans,
            HIDDEN=HIDDEN,
        )  # fmt: skip
        settled[(batch,)](
            moves, active, iterations, residuals, count, limits[1], COUNT=triton.next_power_of_2(count), num_warps=1
        )
        if iteration % ASKED == ASKED - 1 and not bool(active.any()):
            break
    sums_v, sum_powers_v = torch.empty_like(own_v), torch.empty_like(powers_v)
    ratios = room(batch, spans)
    ratio_powers = room(batch, spans, dtype=torch.int32)
    closed[(batch, spans)](
        odds, messages, senders, own_v, powers_v, means_v, sums_v, sum_powers_v, ratios, ratio_powers, height, tiles,
        length, spans, KIND=KIND_CODES[settings.kind], **tile,
    )  # fmt: skip
    both = None
    if pairs:
        both = room(height, width)
        paired[(tiles,)](odds, messages, senders, means_v, both, batch, height, **tile)
        both = both[:visible, :hidden]
    log_z = None
    if settings.kind == "sum":
        log_z = _log(ratios, ratio_powers).sum(1)
        for units in (_log(sums_v, sum_powers_v), _log(sums, sum_powers)):
            log_z += log_one_plus_exp(units).sum(1)
    return KernelResult(means_v[:, :visible], means_h[:, :hidden], both, log_z, iterations.long(), residuals)


def _padded(weights: Tensor, rows: int) -> int:
    return -(-weights.shape[0] // rows) * rows


def _odds(fields: Tensor) -> tuple[Tensor, Tensor]:
    """The odds of some fields: mantissas in [1, 2), and exponents."""
    bits = fields.double() / LOG_2
    powers = bits.floor()
    return torch.exp2(bits - powers).float().contiguous(), powers.int().contiguous()


def _as_floats(mantissa: Tensor, exponent: Tensor) -> Tensor:
    """As `_cut`."""
    within = exponent.clamp(-ODDS_EXPONENT.value, ODDS_EXPONENT.value)
    return torch.ldexp(torch.where(within == exponent, mantissa, 1.0), within)


def _log(mantissa: Tensor, exponent: Tensor) -> Tensor:
    return mantissa.double().log() + exponent.double() * LOG_2
