"""What benchmarks draw, repair by filters and measure, and one run of two of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from machines import seeded

from benchmarks.choices.no_harm import outcome
from benchmarks.filters.binary import Seen, biharmonic, filled, ising, median, total_variation
from benchmarks.filters.mean_field import IsingField
from benchmarks.measures.contests import (
    drd,
    f_measure,
    false_marks,
    forgiving_f_measure,
    pseudo_f_measure,
    psnr,
    recall_of_faint,
    width_of_strokes,
)
from benchmarks.pictures.all_kinds import PICTURES, picture
from benchmarks.pictures.kinds import icon, mask, plan
from benchmarks.pictures.line_art import circuits, maps, staves, tables
from restore.channels import Damage


@pytest.fixture
def bar() -> np.ndarray:
    """A thick bar of ink."""
    page = np.zeros((48, 48), bool)
    page[16:32, 8:40] = True
    return page


@pytest.mark.parametrize(("repair", "setting"), [(median, 3), (median, 5), (total_variation, 0.6), (ising, 0.6)])
def test_filters_remove_flips(bar: np.ndarray, repair: Callable[[Seen, float], np.ndarray], setting: float) -> None:
    flipped = bar ^ (np.random.default_rng(0).random(bar.shape) < 0.1)
    seen = Seen(flipped, 0.1, np.zeros(bar.shape, bool))
    assert (repair(seen, setting) != bar).mean() < 0.25 * (flipped != bar).mean()


@pytest.mark.parametrize("repair", [biharmonic, ising, lambda seen, _: filled(seen, 3)])
def test_holes_in_the_midst_are_filled_and_nothing_else_is_touched(
    bar: np.ndarray, repair: Callable[[Seen, float], np.ndarray]
) -> None:
    hidden = np.zeros(bar.shape, bool)
    hidden[20:28, 16:24] = hidden[4:12, 4:12] = True
    seen = Seen(bar & ~hidden, 0.0, hidden)
    assert not seen.evidence[hidden].any()
    wrong = repair(seen, 0.6) != bar
    assert not wrong[~hidden].any()
    assert wrong[hidden].mean() < 0.1


# --- pictures ---


def circuit(number: int) -> np.ndarray:
    pytest.importorskip("schemdraw")
    return circuits(np.random.default_rng(number))


def staff(number: int) -> np.ndarray:
    pytest.importorskip("verovio")
    pytest.importorskip("resvg_py")
    return staves(np.random.default_rng(number))


DRAWN: dict[str, Callable[[int], np.ndarray]] = {
    "icon": icon,
    "plan": plan,
    "mask": mask,
    "staves": staff,
    "circuits": circuit,
    "maps": lambda number: maps(np.random.default_rng(number)),
    "tables": lambda number: tables(np.random.default_rng(number)),
    **{f"of all kinds, {name}": lambda number, name=name: picture(name) for name in PICTURES},
}


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_have_ink_and_can_be_drawn_again(name: str) -> None:
    drawn = DRAWN[name](0)
    assert (DRAWN[name](0) == drawn).all()
    if ", grey" in name:
        assert drawn.dtype == np.float64 and 0 <= drawn.min() < drawn.max() <= 1 and len(np.unique(drawn)) > 6
    else:
        assert drawn.dtype == bool and (0.01 < drawn.mean() < 0.999 or name.endswith("blank"))
    if not name.startswith("of all kinds"):
        other = DRAWN[name](1)
        assert other.shape != drawn.shape or (other != drawn).any()


# --- harm ---


@pytest.mark.thorough
def test_the_command_restores_a_picture_and_refuses_one_without_ending_the_benchmark() -> None:
    done, seen, found = outcome("bar code", "0.1", 0, ("--model", "conv-art", "--p", "0.1"))
    assert done.code == 0 and done.verdict == "helped"
    assert seen.shape == found.shape and (seen != found).any()
    done, seen, found = outcome("music", "clean", 0, ("--model", "no-such-model"))
    assert done.code == 4 and done.verdict == "ok"
    assert (seen == found).all()


# --- measures by hand ---


def test_drd_of_a_hand_computation() -> None:
    truth = np.zeros((16, 16), bool)
    truth[2:6, 3:7] = True
    # One of the four blocks is mixed. Weights of a 5x5 window without its centre, by distance: 4 of 1, 4 of 1/sqrt 2,
    # 4 of 1/2, 8 of 1/sqrt 5, 4 of 1/sqrt 8.
    total = 4 + 4 / 2**0.5 + 4 / 2 + 8 / 5**0.5 + 4 / 8**0.5
    found = truth.copy()
    found[10, 10] = True
    # All 24 around it are paper, so that ink there is wrong to the full.
    assert drd(found, truth) == pytest.approx(1.0)
    found = truth.copy()
    found[2, 3] = False
    # The corner of the square was taken for paper: within reach there are 8 more pixels of ink, below and to the right.
    ink = 2 * 1 + 1 / 2**0.5 + 2 / 2 + 2 / 5**0.5 + 1 / 8**0.5
    assert drd(found, truth) == pytest.approx(ink / total)
    assert drd(truth, truth) == 0


def test_f_measure_and_psnr() -> None:
    truth, found = np.zeros((10, 10), bool), np.zeros((10, 10), bool)
    truth[0, :4] = found[0, 2:6] = True
    # Precision and recall are one half; 4 of 100 pixels are wrong.
    assert f_measure(found, truth) == 0.5
    assert psnr(found, truth) == pytest.approx(13.9794, abs=1e-4)
    assert f_measure(truth, truth) == 1 and psnr(truth, truth) == np.inf


# --- the mean field of an Ising model, against its equation ---


SHAPE = (3, 4)


def test_it_ends_where_the_equation_holds() -> None:
    coupling, p = 0.3, 0.2
    image = (torch.rand(1, 12, generator=seeded(1)) < 0.5).float()
    hidden = torch.zeros(1, 12, dtype=torch.bool).index_fill(1, torch.tensor([5]), True)
    white = IsingField(SHAPE, coupling).restore(image, Damage(p, hidden=hidden.reshape(1, *SHAPE).numpy()))
    spins = (2 * white - 1).reshape(SHAPE).tolist()
    for row in range(3):
        for column in range(4):
            beside = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
            around = sum(spins[one][other] for one, other in beside if 0 <= one < 3 and 0 <= other < 4)
            index = 4 * row + column
            told = 0.0 if index == 5 else (2 * image[0, index].item() - 1) * math.log((1 - p) / p) / 2
            # Couplings this weak make the mean field a contraction, by 4 * 0.3 at most: the damped steps are settled.
            assert math.isclose(spins[row][column], math.tanh(coupling * around + told), abs_tol=1e-3)


def test_pseudo_f_forgives_thin_strokes_and_not_missed_ones(bar: np.ndarray) -> None:
    """The same number of pixels are missed, all around or of one part."""
    thin = np.zeros_like(bar)
    thin[17:31, 9:39] = True
    missed = bar.copy()
    missed[:, 8 : 8 + round((bar.sum() - thin.sum()) / 16)] = False
    assert abs(f_measure(thin, bar) - f_measure(missed, bar)) < 0.01
    assert pseudo_f_measure(bar, bar) == pseudo_f_measure(thin, bar) == 1
    assert pseudo_f_measure(missed, bar) < 0.97
    assert pseudo_f_measure(np.zeros_like(bar), bar) == 0


def test_width_of_strokes_tells_thin_from_thick_and_passes_over_missed_ones() -> None:
    truth = np.zeros((80, 80), bool)
    truth[10:16, 5:75] = truth[50:56, 5:75] = True
    thin, thick, missed = (truth.copy() for _ in range(3))
    thin[15] = thin[55] = False
    thick[16, 5:75] = thick[56, 5:75] = True
    missed[40:] = False
    missed[30:34, 30:34] = True
    assert width_of_strokes(truth, truth) == width_of_strokes(missed, truth) == 1
    assert width_of_strokes(thin, truth) == pytest.approx(5 / 6, abs=0.02)
    assert width_of_strokes(thick, truth) == pytest.approx(7 / 6, abs=0.02)
    assert math.isnan(width_of_strokes(~truth, truth))


def test_recall_of_faint_ink_counts_only_faint_strokes() -> None:
    truth = np.zeros((80, 80), bool)
    truth[10:14, 5:75] = truth[50:54, 5:75] = True
    grey = np.full(truth.shape, 200.0)
    grey[10:14, 5:75], grey[50:54, 5:75] = 50, 165
    assert recall_of_faint(truth, truth, grey) == 1
    assert recall_of_faint(grey < 100, truth, grey) == 0
    half = truth.copy()
    half[50:54, 40:] = False
    assert recall_of_faint(half, truth, grey) == pytest.approx(0.5, abs=0.05)
    # There is none.
    assert math.isnan(recall_of_faint(truth, truth, np.where(truth, 50.0, 200.0)))


def test_f_forgives_an_edge_that_is_one_pixel_off_and_no_more(bar: np.ndarray) -> None:
    for moved, within in ((1, 16), (2, 15), (3, 14)):
        found = np.roll(bar, moved, 0)
        assert f_measure(found, bar) == pytest.approx((16 - moved) / 16)
        assert forgiving_f_measure(found, bar) == pytest.approx(within / 16)


def test_marks_that_touch_no_ink_are_false_and_thick_strokes_are_not(bar: np.ndarray) -> None:
    found = bar.copy()
    found[13:16, 8:40] = True  # thicker
    assert false_marks(found, bar) == false_marks(bar, bar) == 0
    found[2:6, 2:6] = True
    found[44, 44] = True
    assert false_marks(found, bar) == 17 / bar.sum()
