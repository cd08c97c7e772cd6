"""The kernels of belief propagation for GPUs, in Triton: what `bp_kernel.c` does, by the same formulas.

Messages are odds, and products of odds keep their exponents in integers; see there. A program updates a tile of rows:
it multiplies the messages into its visible units, and sends theirs back over the old ones. What came in is computed
twice, from what the first-level cache still holds, so that a row may have any length and there is one array of
messages. Tiles leave the products of what they send, tile by tile; the hidden beliefs are made of these.

Many images: each has one program, which iterates by itself until its image has settled. Few images: a launch for the
tiles of all of them, one for the hidden beliefs, and one that sees which images have settled.
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
from restore.solvers.messages.bp_kernel import KINDS, OFF, Found, Rule
from restore.units import log_one_plus_exp

# Edges of a tile, the most hidden units of one, and warps that share it: counted in docs/gpu.md.
EDGES = 2048
WIDEST = 128
WARPS = 8

# Partial products of so many tiles are taken at once.
TILES = tl.constexpr(16)

# Belief odds are cut at 2 to this power and its inverse, as in the C kernel.
LIMIT = tl.constexpr(71)

MAX = tl.constexpr(KINDS["max"])
MIXED = tl.constexpr(KINDS["mixed"])

# With fewer images than this for each multiprocessor, several programs share an image.
PROGRAMS = 2

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
    """As a float, cut to the range in which sums of messages and beliefs stay finite."""
    within = tl.minimum(tl.maximum(exponent, -LIMIT), LIMIT)
    power = ((within + 127) << 23).to(tl.float32, bitcast=True)
    return tl.where(within == exponent, mantissa * power, power)


@triton.jit
def _message(weight, belief, back, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
    """The odds that a sender with this belief sends, without what came back over the edge."""
    if KIND == MAX:
        return tl.maximum(weight * belief, back) / tl.maximum(belief, back)
    return (weight * belief + back) / (belief + back)


@triton.jit
def _gathered(weights, messages, hidden, mantissa, exponent, rows, width, COLS: tl.constexpr, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
    """The beliefs of some visible units, from their own odds and all messages into them."""
    for first in range(0, width, COLS):
        at = first + tl.arange(0, COLS)
        edge = rows[:, None] * width + at[None, :]
        back = tl.load(messages + edge)
        into = _message(tl.load(weights + edge), tl.load(hidden + at)[None, :], back, KIND)
        product, more = tl.reduce((into, tl.full(into.shape, 0, tl.int32)), 1, _times)
        mantissa, exponent = _times(mantissa, exponent, product, more)
    return mantissa, exponent


@triton.jit
def _tile(  # type: ignore[no-untyped-def]
    weights, messages, hidden, own, powers, means, products, exponents, tile, width,
    ROWS: tl.constexpr, COLS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """One iteration of a tile; returns how far a mean of it has moved. The pointers are those of one image."""
    rows = tile * ROWS + tl.arange(0, ROWS)
    mantissa, exponent = _gathered(
        weights, messages, hidden, tl.load(own + rows), tl.load(powers + rows), rows, width, COLS, KIND
    )
    belief = _cut(mantissa, exponent)
    mean = belief / (1 + belief)
    moved = tl.reduce(tl.abs(mean - tl.load(means + rows)), 0, _larger)
    # Every thread has read the old means and messages before one writes new ones.
    tl.debug_barrier()
    tl.store(means + rows, mean)
    for first in range(0, width, COLS):
        at = first + tl.arange(0, COLS)
        edge = rows[:, None] * width + at[None, :]
        weight, back = tl.load(weights + edge), tl.load(messages + edge)
        if KIND == MIXED:
            sent = tl.where(belief[:, None] > 1, weight, 1.0)
        else:
            into = _message(weight, tl.load(hidden + at)[None, :], back, KIND)
            sent = _message(weight, belief[:, None], into, KIND)
        tl.store(messages + edge, sent)
        product, more = tl.reduce((sent, tl.full(sent.shape, 0, tl.int32)), 0, _times)
        tl.store(products + tile * width + at, product)
        tl.store(exponents + tile * width + at, more)
    return moved


@triton.jit
def _hidden(  # type: ignore[no-untyped-def]
    hidden, own, powers, sums, sum_powers, means, products, exponents, first, tiles, width, COLS: tl.constexpr
):
    """The beliefs of some hidden units after an iteration; returns how far a mean of them has moved."""
    at = first + tl.arange(0, COLS)
    mantissa, exponent = tl.load(own + at), tl.load(powers + at)
    for start in range(0, tiles, TILES):
        tile = start + tl.arange(0, TILES)[:, None]
        place, there = tile * width + at[None, :], tile < tiles
        parts = tl.load(products + place, mask=there, other=1.0), tl.load(exponents + place, mask=there, other=0)
        product, more = tl.reduce(parts, 0, _times)
        mantissa, exponent = _times(mantissa, exponent, product, more)
    belief = _cut(mantissa, exponent)
    mean = belief / (1 + belief)
    moved = tl.reduce(tl.abs(mean - tl.load(means + at)), 0, _larger)
    tl.debug_barrier()
    tl.store(hidden + at, belief)
    tl.store(sums + at, mantissa)
    tl.store(sum_powers + at, exponent)
    tl.store(means + at, mean)
    return moved


@triton.jit
def whole(  # type: ignore[no-untyped-def]
    weights, messages, hidden, own_v, powers_v, own_h, powers_h, sums, sum_powers, means_v, means_h, products,
    exponents, iterations, residuals, height, width, tiles, max_iter, tol,
    ROWS: tl.constexpr, COLS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """All iterations of an image."""
    image = tl.program_id(0).to(tl.int64)
    row, column, part = image * height, image * width, image * tiles * width
    iteration, moved = 0, tol + 1.0
    while (iteration < max_iter) & (moved > tol):
        iteration += 1
        moved = tol * 0.0
        for tile in range(tiles):
            change = _tile(
                weights, messages + row * width, hidden + column, own_v + row, powers_v + row, means_v + row,
                products + part, exponents + part, tile, width, ROWS, COLS, KIND,
            )  # fmt: skip
            moved = tl.maximum(moved, change)
        # What threads have written others read.
        tl.debug_barrier()
        for first in range(0, width, COLS):
            change = _hidden(
                hidden + column, own_h + column, powers_h + column, sums + column, sum_powers + column,
                means_h + column, products + part, exponents + part, first, tiles, width, COLS,
            )  # fmt: skip
            moved = tl.maximum(moved, change)
        tl.debug_barrier()
    tl.store(iterations + image, iteration)
    tl.store(residuals + image, moved)


@triton.jit
def tiles_once(  # type: ignore[no-untyped-def]
    weights, messages, hidden, own_v, powers_v, means_v, products, exponents, moves, active, height, width, tiles,
    ROWS: tl.constexpr, COLS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Messages of a tile of an image that has not settled, there and back."""
    image, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(active + image) == 0:
        return
    row, part = image * height, image * tiles * width
    moved = _tile(
        weights, messages + row * width, hidden + image * width, own_v + row, powers_v + row, means_v + row,
        products + part, exponents + part, tile, width, ROWS, COLS, KIND,
    )  # fmt: skip
    tl.store(moves + image * (tiles + width // COLS) + tile, moved)


@triton.jit
def hidden_once(  # type: ignore[no-untyped-def]
    hidden, own_h, powers_h, sums, sum_powers, means_h, products, exponents, moves, active, width, tiles,
    COLS: tl.constexpr,
):  # fmt: skip
    """Beliefs of some hidden units of an image that has not settled."""
    image, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(active + image) == 0:
        return
    column, part = image * width, image * tiles * width
    moved = _hidden(
        hidden + column, own_h + column, powers_h + column, sums + column, sum_powers + column, means_h + column,
        products + part, exponents + part, block * COLS, tiles, width, COLS,
    )  # fmt: skip
    tl.store(moves + image * (tiles + width // COLS) + tiles + block, moved)


@triton.jit
def settled(moves, active, iterations, residuals, count, tol, COUNT: tl.constexpr):  # type: ignore[no-untyped-def]
    """Whether an image has settled in the iteration that is done."""
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
    weights, messages, hidden, own_v, powers_v, means_v, sums_v, sum_powers_v, ratios, ratio_powers, height, width,
    tiles, ROWS: tl.constexpr, COLS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """The visible beliefs that answer the last hidden ones, and what the edges of a tile add to log Z."""
    image, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    row, column = image * height, image * width
    rows = tile * ROWS + tl.arange(0, ROWS)
    mantissa, exponent = _gathered(
        weights, messages + row * width, hidden + column, tl.load(own_v + row + rows), tl.load(powers_v + row + rows),
        rows, width, COLS, KIND,
    )  # fmt: skip
    belief = _cut(mantissa, exponent)
    tl.store(means_v + row + rows, belief / (1 + belief))
    tl.store(sums_v + row + rows, mantissa)
    tl.store(sum_powers_v + row + rows, exponent)
    product, power = tl.full((ROWS,), 1.0, tl.float32), tl.full((ROWS,), 0, tl.int32)
    for first in range(0, width, COLS):
        at = first + tl.arange(0, COLS)
        back = tl.load(messages + row * width + rows[:, None] * width + at[None, :])
        sender = tl.load(hidden + column + at)[None, :]
        ratio = (back + sender) / (back * (1 + sender))
        more, exponents = tl.reduce((ratio, tl.full(ratio.shape, 0, tl.int32)), 1, _times)
        product, power = _times(product, power, more, exponents)
    product, power = tl.reduce((product, power), 0, _times)
    tl.store(ratios + image * tiles + tile, product)
    tl.store(ratio_powers + image * tiles + tile, power)


@triton.jit
def paired(  # type: ignore[no-untyped-def]
    weights, messages, hidden, means_v, pairs, images, height, width, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """P(v = h = 1) of the edges of a tile, added up over images."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.program_id(1) * COLS + tl.arange(0, COLS)
    edge = rows[:, None] * width + at[None, :]
    weight = tl.load(weights + edge)
    total = tl.load(pairs + edge)
    for _ in range(images):
        both = weight * tl.load(hidden + at)[None, :]
        total += tl.load(means_v + rows)[:, None] * (both / (both + tl.load(messages + edge)))
        messages, hidden, means_v = messages + height * width, hidden + width, means_v + height
    tl.store(pairs + edge, total)


def shapes(weights: Tensor) -> tuple[int, int]:
    """The rows and hidden units of a tile of a machine with weights (D, H)."""
    columns = min(WIDEST, max(16, triton.next_power_of_2(weights.shape[1])))
    return max(4, min(EDGES // columns, triton.next_power_of_2(weights.shape[0]))), columns


def memory(weights: Tensor, pairs: bool) -> int:
    """Bytes that an image takes: its messages, and the products of each tile; pairs take as much for all images."""
    rows, columns = shapes(weights)
    height, width = _padded(weights, rows, columns)
    return 4 * (1 + pairs) * height * width + 8 * height * width // rows + 32 * (height + width)


def run(
    weights: Tensor,
    visible_fields: Tensor,
    hidden_fields: Tensor,
    rule: Rule,
    *,
    pairs: bool,
    together: bool | None = None,
) -> Found:
    """Solve a batch on the device of the weights; arguments as those of `bp_kernel.run`.

    Args:
        together: whether one program does all iterations of an image; None if that depends on how many there are.
    """
    (visible, hidden), batch, device = weights.shape, len(visible_fields), weights.device
    rows, columns = shapes(weights)
    height, width = _padded(weights, rows, columns)
    tiles = height // rows
    if together is None:
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        together = batch >= PROGRAMS * processors

    def room(*shape: int, dtype: torch.dtype = torch.float32, value: float = 0) -> Tensor:
        return torch.full(shape, value, dtype=dtype, device=device)

    odds = pad(weights.exp(), (0, width - hidden, 0, height - visible), value=1.0).contiguous()
    own_v, powers_v = _odds(pad(visible_fields, (0, height - visible), value=OFF))
    own_h, powers_h = _odds(pad(hidden_fields, (0, width - hidden), value=OFF))
    senders, receivers = _as_floats(own_h, powers_h), _as_floats(own_v, powers_v)
    means_v, means_h = receivers / (1 + receivers), senders / (1 + senders)
    messages = room(batch, height, width, value=1.0)
    products, exponents = room(batch, tiles, width), room(batch, tiles, width, dtype=torch.int32)
    sums, sum_powers = room(batch, width), room(batch, width, dtype=torch.int32)
    iterations, residuals = room(batch, dtype=torch.int32), room(batch)
    tile: dict[str, Any] = {"ROWS": rows, "COLS": columns, "KIND": KINDS[rule.kind], "num_warps": WARPS}
    limits = min(rule.max_iter, 2**31 - 1), float(rule.tol)
    if together:
        whole[(batch,)](
            odds, messages, senders, own_v, powers_v, own_h, powers_h, sums, sum_powers, means_v, means_h, products,
            exponents, iterations, residuals, height, width, tiles, *limits, **tile,
        )  # fmt: skip
    else:
        count = tiles + width // columns
        moves, active = room(batch, count), room(batch, dtype=torch.int32, value=1)
        for iteration in range(limits[0]):
            tiles_once[(batch, tiles)](
                odds, messages, senders, own_v, powers_v, means_v, products, exponents, moves, active, height, width,
                tiles, **tile,
            )  # fmt: skip
            hidden_once[(batch, width // columns)](
                senders, own_h, powers_h, sums, sum_powers, means_h, products, exponents, moves, active, width, tiles,
                COLS=columns, num_warps=WARPS,
            )  # fmt: skip
            settled[(batch,)](
                moves, active, iterations, residuals, count, limits[1], COUNT=triton.next_power_of_2(count), num_warps=1
            )
            if iteration % ASKED == ASKED - 1 and not bool(active.any()):
                break
    sums_v, sum_powers_v = torch.empty_like(own_v), torch.empty_like(powers_v)
    ratios, ratio_powers = room(batch, tiles), room(batch, tiles, dtype=torch.int32)
    closed[(batch, tiles)](
        odds, messages, senders, own_v, powers_v, means_v, sums_v, sum_powers_v, ratios, ratio_powers, height, width,
        tiles, **tile,
    )  # fmt: skip
    both = None
    if pairs:
        both = room(height, width)
        paired[(tiles, width // columns)](
            odds, messages, senders, means_v, both, batch, height, width, ROWS=rows, COLS=columns, num_warps=WARPS
        )
        both = both[:visible, :hidden]
    log_z = None
    if rule.kind == "sum":
        log_z = _log(ratios, ratio_powers).sum(1)
        for units in (_log(sums_v, sum_powers_v), _log(sums, sum_powers)):
            log_z += log_one_plus_exp(units).sum(1)
    return Found(means_v[:, :visible], means_h[:, :hidden], both, log_z, iterations.long(), residuals)


def _padded(weights: Tensor, rows: int, columns: int) -> tuple[int, int]:
    visible, hidden = weights.shape
    return -(-visible // rows) * rows, -(-hidden // columns) * columns


def _odds(fields: Tensor) -> tuple[Tensor, Tensor]:
    """The odds of some fields: mantissas in [1, 2), and exponents."""
    bits = fields.double() / LOG_2
    powers = bits.floor()
    return torch.exp2(bits - powers).float().contiguous(), powers.int().contiguous()


def _as_floats(mantissa: Tensor, exponent: Tensor) -> Tensor:
    """As `_cut`."""
    within = exponent.clamp(-LIMIT.value, LIMIT.value)
    return torch.ldexp(torch.where(within == exponent, mantissa, 1.0), within)


def _log(mantissa: Tensor, exponent: Tensor) -> Tensor:
    return mantissa.double().log() + exponent.double() * LOG_2
