"""Conditional convolutional machines against their energy, and the views of a page against what they are to mean."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from machines import seeded
from oracle import binary_states
from scipy.ndimage import grey_closing, maximum_filter, uniform_filter
from torch import Tensor

from restore.channels import Damage
from restore.channels.views import AVERAGED, COARSE, FAR, INK, LEAST_CONTRAST, LEAST_INK, THICK, THIN, VIEWS, views_of
from restore.families import FAMILIES, Features, Spec
from restore.fields import Fields
from restore.priors import ConditionalDBM, ConvolutionalDBM
from restore.priors.page import views_of_page
from restore.solvers.up_and_down import UpAndDown

SHAPE = (3, 4)
KINDS = [(1, "spin"), (1, "spin")]
SPEC = Spec(family="conditional_convolutional", layers=(Features(1, 3, 1, "spin"), Features(1, 3, 1, "spin")))


def random_parts(seed: int, scale: float = 0.4) -> dict[str, Tensor]:
    """The tensors of a small machine, in double precision."""
    generator = seeded(seed)
    shapes = FAMILIES["conditional_convolutional"].shapes(SPEC, SHAPE)
    return {name: scale * torch.randn(shape, generator=generator).double() for name, shape in shapes.items()}


def page_of(levels: Tensor, hidden: Tensor | None = None) -> Fields:
    seen = torch.ones_like(levels) if hidden is None else (~hidden).to(levels.dtype)
    return Fields(levels * seen, seen)


def levels(seed: int, count: int = 2) -> Tensor:
    return torch.rand(count, SHAPE[0] * SHAPE[1], generator=seeded(seed)).double()


def test_a_page_adds_kernels_over_its_views_to_the_biases() -> None:
    parts, grey = random_parts(0), levels(1)
    machine = ConditionalDBM.of(parts, SHAPE, KINDS)
    plain = ConvolutionalDBM.of({name: part for name, part in parts.items() if "inputs" not in name}, SHAPE, KINDS)
    views = views_of(grey.reshape(-1, 1, *SHAPE), torch.ones(2, 1, *SHAPE).double())
    heard = []
    for index in range(3):
        kernel, padded = parts[f"inputs.{index}"][0], torch.nn.functional.pad(views, (1, 1, 1, 1))
        heard.append(
            torch.stack(
                [
                    (padded[:, :, row : row + 3, column : column + 3] * kernel).sum((1, 2, 3))
                    for row in range(SHAPE[0])
                    for column in range(SHAPE[1])
                ],
                1,
            )
        )
    states = torch.randint(2, (2, 12), generator=seeded(2)).double()
    features = [2 * torch.rand(2, 12, generator=seeded(number)).double() - 1 for number in (3, 4)]
    every = (states, *features)
    expected = plain.energy(every) - sum((own * of).sum(1) for own, of in zip(every, heard, strict=True))
    torch.testing.assert_close(machine.tilt(page_of(grey)).energy(every), expected)


def test_marginals_of_a_page_are_those_of_enumeration_where_couplings_are_weak() -> None:
    parts = random_parts(5)
    parts |= {name: 0.02 * part for name, part in parts.items() if name.startswith("weights")}
    machine = ConditionalDBM.of(parts, SHAPE, KINDS).tilt(page_of(levels(6, 1)))
    pixels = binary_states(12, torch.zeros((), dtype=torch.float64))
    spins, (first, second) = 2 * pixels - 1, machine.couplings
    pixel, lower, upper = (layer.parameters["bias"].expand(1, 12) for layer in machine.layers)
    # The upper spins are summed out for each state of the lower ones, and these for each state of the pixels.
    of_spins = torch.log(2 * torch.cosh(second.up(spins) + upper)).sum(1)
    of_pixels = torch.logsumexp((first.up(pixels) + lower) @ spins.T + of_spins, 1) + (pixels * pixel).sum(1)
    weight = torch.softmax(of_pixels, 0)
    solved = UpAndDown(max_iter=200, tol=1e-12).solve(machine)
    torch.testing.assert_close(solved.means[0][0], weight @ pixels, atol=2e-2, rtol=0)


def test_hidden_levels_say_nothing() -> None:
    hidden = torch.arange(12) % 5 == 0
    machine, grey = ConditionalDBM.of(random_parts(7), SHAPE, KINDS), levels(8)
    other = torch.where(hidden, 1 - grey, grey)
    biases = [machine.tilt(page_of(values, hidden)).layers[0].parameters["bias"] for values in (grey, other)]
    torch.testing.assert_close(*biases, rtol=0, atol=0)


@pytest.mark.parametrize("precision", [1e-3, 1.0, 50.0])
def test_a_page_as_evidence_is_seen_as_its_levels_and_what_is_visible_of_them(precision: float) -> None:
    hidden, grey = torch.rand(2, 12, generator=seeded(3)) < 0.4, levels(8)
    seen = (~hidden).double()
    views = views_of_page(Fields(precision * grey * seen, precision * seen), SHAPE)
    expected = views_of(*(values.reshape(2, 1, *SHAPE) for values in (grey, seen)))
    torch.testing.assert_close(views, expected)
    assert torch.equal(views[:, -1].flatten(1), 2 * hidden.double())


def test_levels_come_times_any_precision() -> None:
    machine, grey = ConditionalDBM.of(random_parts(9), SHAPE, KINDS), levels(10)
    biases = [
        machine.tilt(Fields(factor * grey, factor * torch.ones_like(grey))).layers[1].parameters["bias"]
        for factor in (1.0, 100.0)
    ]
    torch.testing.assert_close(*biases)


def test_the_channel_of_a_page_is_its_levels() -> None:
    hidden = np.zeros((1, 2, 2), bool)
    hidden[0, 0, 0] = True
    page = Damage(hidden=hidden).shown.evidence(torch.tensor([[0.2, 0.4, 0.6, 0.8]]))
    assert page.quadratic.tolist() == [[0, 1, 1, 1]]
    torch.testing.assert_close(page.linear, torch.tensor([[0.0, 0.4, 0.6, 0.8]]))


def views_by_scipy(grey: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """The views of a page (H, W) by the operations of mathematical morphology, one after the other."""

    def averaged(grid: np.ndarray) -> np.ndarray:
        """Over squares of coarse pixels; the last ones continue what is at the border."""
        whole = np.pad(grid, [(0, -size % COARSE) for size in grid.shape], mode="edge")
        return whole.reshape(len(whole) // COARSE, COARSE, -1, COARSE).mean((1, 3))

    def blurred(grid: np.ndarray, side: int) -> np.ndarray:
        return uniform_filter(uniform_filter(grid, side, mode="nearest"), side, mode="nearest")

    def largest(grid: np.ndarray, side: int) -> np.ndarray:
        return maximum_filter(grid, side, mode="constant", cval=-np.inf)

    def enlarged(grid: np.ndarray) -> np.ndarray:
        """Between the middles of coarse pixels, and constant beyond the outermost."""
        for axis, size in enumerate(grey.shape):
            at, middles = np.arange(size) + 0.5, COARSE * (np.arange(grid.shape[axis]) + 0.5)
            between = partial(np.interp, at, middles)
            grid = np.apply_along_axis(between, axis, grid)
        return grid

    share, light = averaged(visible), averaged(grey * visible)
    around = blurred(light, THIN) / np.maximum(blurred(share, THIN), LEAST_CONTRAST)
    coarse = np.where(share > 0, light / np.maximum(share, 1 / COARSE**2), around)
    level = np.where(visible > 0, grey, enlarged(coarse))

    def paper(side: int) -> np.ndarray:
        return enlarged(blurred(-largest(-largest(coarse, side), side), side // 2 | 1))

    near, wide = (np.clip(paper(side) - level, 0, 1) for side in (THIN, THICK))
    whole = np.pad(near, [(0, -size % COARSE) for size in near.shape], mode="edge")
    deepest = whole.reshape(len(whole) // COARSE, COARSE, -1, COARSE).max((1, 3))
    ink, far = (enlarged(blurred(largest(deepest, side), side // 4 * 2 + 1)) for side in (INK, FAR))
    mean, square = (blurred(averaged(level**power), AVERAGED) for power in (1, 2))
    deviation = enlarged(np.sqrt(np.maximum(square - mean**2, LEAST_CONTRAST**2)))
    return np.stack(
        [
            2 * near / (ink + LEAST_INK) - 1,
            2 * near / (far + LEAST_INK) - 1,
            np.clip((enlarged(mean) - level) / (3 * deviation), -2, 2),
            4 * near,
            4 * wide,
            2 * level - 1,
            2 * ink,
            2 * (1 - visible),
        ]
    )


@pytest.mark.parametrize("shape", [(96, 181), (61, 50)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_views_are_those_of_closings_dilations_and_averages(shape: tuple[int, int], seed: int) -> None:
    """On pages with blots of any depth, few enough that ink nearby is not that further away."""
    draw = np.random.default_rng(seed)
    grey = np.where(draw.random(shape) < 0.002, draw.random(shape), 1.0)
    grey = -maximum_filter(-grey, 5) * (0.9 + 0.1 * draw.random(shape))
    visible = (maximum_filter(draw.random(shape) < 0.003, 9) == 0).astype(float)
    views = views_of(*(torch.from_numpy(values)[None, None] for values in (grey, visible)))
    np.testing.assert_allclose(views[0].numpy(), views_by_scipy(grey, visible), atol=1e-6)


def ink_on(paper: Tensor, depth: float = 0.5) -> Tensor:
    """A page of 96x96 pixels with a stroke 5 pixels wide."""
    page = paper.clone()
    page[..., 40:45, 20:76] *= 1 - depth
    return page


def seen(page: Tensor) -> Tensor:
    return views_of(page, torch.ones_like(page))[0]


@given(light=st.floats(0.4, 1.0), slope=st.floats(-0.4, 0.4))
def test_light_moves_no_view_of_ink(light: float, slope: float) -> None:
    rows = torch.linspace(-0.5, 0.5, 96)[:, None].expand(96, 96)
    shaded = light * (1 + slope * rows)[None, None]
    depth = seen(ink_on(shaded.clamp(0, 1)))[0]
    assert depth[42, 30:66].min() > 0.5
    assert depth[10:25].max() < -0.5 and depth[60:85].max() < -0.5


def test_faint_ink_far_from_dark_ink_is_as_deep_as_it() -> None:
    page = ink_on(torch.full((1, 1, 96, 192), 0.9), 0.8)
    page[..., 40:45, 130:170] = 0.9 * 0.75
    depth = seen(page)[0]
    assert float(depth[42, 150]) > 0.4 and float(depth[42, 50]) > 0.4


def test_the_paper_is_a_greyscale_closing() -> None:
    """On a page of whole coarse pixels that do not vary inside: the closing of Gatos et al. (2006), before blurring."""
    coarse = torch.rand(24, 24, generator=seeded(0))
    page = coarse.repeat_interleave(COARSE, 0).repeat_interleave(COARSE, 1)[None, None]
    from restore.channels.views import _closed

    closed = _closed(coarse[None, None], THIN)[0, 0]
    # Beyond the border nothing counts, for which the reference needs a margin that never wins.
    expected = grey_closing(coarse.numpy(), (THIN, THIN), mode="nearest")
    inner = slice(THIN, -THIN)
    np.testing.assert_allclose(closed.numpy()[inner, inner], expected[inner, inner])
    assert views_of(page, torch.ones_like(page)).shape == (1, VIEWS, 96, 96)


def test_hidden_pixels_are_taken_for_what_is_around_them() -> None:
    page, visible = torch.full((1, 1, 64, 64), 0.7), torch.ones(1, 1, 64, 64)
    visible[..., 30:33, 30:33] = 0
    whole = views_of(page, torch.ones_like(page))
    page[..., 30:33, 30:33] = 0.0
    torch.testing.assert_close(views_of(page, visible)[:, :-1], whole[:, :-1], atol=1e-4, rtol=0)
    assert views_of(page, visible)[0, -1].sum() == 2 * 9


@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (7, 9), (130, 41)])
@pytest.mark.parametrize("level", [0.0, 0.5, 1.0])
def test_views_of_any_size_are_finite(shape: tuple[int, int], level: float) -> None:
    page = torch.full((1, 1, *shape), level)
    for visible in (torch.ones_like(page), torch.zeros_like(page)):
        views = views_of(page, visible)
        assert views.shape == (1, VIEWS, *shape) and bool(views.isfinite().all())
