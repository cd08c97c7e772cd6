"""Parts of a picture that are another matter: tiles in which changed pixels form a pattern stay as they were."""

from __future__ import annotations

import numpy as np
import pytest

import restore
from benchmarks.pictures.all_kinds import picture
from restore.inference.decision.measured import TILE, patterned
from restore.inference.painting import Draft
from restore.inference.restored import Restored
from restore.status import Outcome, Status
from training.data.pages import page
from training.data.text import families_for_tests

SHAPE = (3 * TILE + 40, 2 * TILE + 90)
EVERY = np.ones(SHAPE, bool)


def draft(changed: np.ndarray) -> Draft:
    """An answer that is white wherever it changes nothing."""
    return Draft(~changed, np.ones(changed.shape), np.zeros(changed.shape), grey=False)


@pytest.mark.parametrize("p", [0.003, 0.1, 0.3])
def test_independent_flips_form_no_pattern(p: float) -> None:
    assert not patterned(draft(np.random.default_rng(0).random(SHAPE) < p), EVERY).any()


def test_a_pattern_is_found_where_it_is() -> None:
    """The last tiles of an axis are as large as what is left: every pixel is in one."""
    for rows, columns in ((slice(0, TILE), slice(TILE, None)), (slice(2 * TILE, None), slice(0, TILE))):
        changed = np.random.default_rng(0).random(SHAPE) < 0.02
        changed[rows, columns] |= np.indices(changed[rows, columns].shape).sum(0) % 5 == 0
        found = patterned(draft(changed), EVERY)
        assert found[rows, columns].all()
        found[rows, columns] = False
        assert not found.any()


def test_hidden_pixels_do_not_count() -> None:
    changed = np.zeros(SHAPE, bool)
    changed[::4, ::4] = True
    assert not patterned(draft(changed), ~changed).any()
    assert patterned(draft(changed), EVERY).all()


def test_a_small_picture_is_one_part() -> None:
    lines = np.indices((40, TILE + 50))[0] % 4 == 0
    assert patterned(draft(lines), np.ones(lines.shape, bool)).all()


@pytest.mark.usefixtures("fonts")
def test_print_around_a_screened_picture_is_restored_and_the_picture_stays() -> None:
    """As well as without it; where nothing can be trusted, all of it stays."""
    clean = 1.0 - (np.asarray(page(families_for_tests(), 3, 0, (700, 600))) > 127)
    screened, inside = clean.copy(), np.zeros(clean.shape, bool)
    inside[220:420, 160:400] = True
    screened[inside] = np.asarray(picture("halftone", 5), float).ravel()
    flips = np.random.default_rng(1).random(clean.shape) < 0.01

    def wrong(truth: np.ndarray) -> tuple[np.ndarray, Restored]:
        seen = np.where(flips, 1 - truth, truth)
        found, solution = restore.denoise(np.uint8(255 * seen), return_solution=True)
        return (found > 127) != truth, solution

    (plain, _), (around, solution) = wrong(clean), wrong(screened)
    assert solution.outcome is Outcome.RESTORED
    assert any(Status.NOT_NOISE.sentence in note for note in solution.notes)
    assert around[inside].mean() <= flips[inside].mean()  # as it was, but at its edge
    far = np.ones(clean.shape, bool)
    far[220 - TILE : 420 + TILE, 160 - TILE : 400 + TILE] = False
    assert around[far].mean() <= 1.05 * plain[far].mean() + 1e-4
    assert plain[far].mean() < 0.4 * flips[far].mean()
