"""Parts of a grey page that are no ink on paper stay as they were, and are said; the ink around them is read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from skimage import data
from skimage.color import rgb2gray

import restore
from restore.channels.damage import Damage, Observed
from restore.inference.decision.rules import CROWDED
from restore.inference.engine import PictureEngine
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.scans import reading as room
from restore.inference.scans.parts import BOXED, _parts, other_parts
from restore.inference.scans.reading import read
from restore.status import Outcome, Status
from training.data.scans import scan
from training.data.text import families_for_tests

PHOTOGRAPH = data.camera() / 255
WHOLE = rgb2gray(data.astronaut())
PLACE = slice(150, 330), slice(90, 340)


@pytest.fixture
def page(fonts: None) -> np.ndarray:
    """A drawn scan of print, grey levels of 255."""
    return scan(families_for_tests(), 11, 5, (512, 512))[0]


def with_part(page: np.ndarray, part: np.ndarray) -> np.ndarray:
    pasted = page.copy()
    shape = pasted[PLACE].shape
    pasted[PLACE] = np.rint(np.quantile(page, 0.9) * part[: shape[0], : shape[1]])
    return pasted


PARTS = {
    "photograph": PHOTOGRAPH[100:, 150:],
    "grey area": np.full((512, 512), 0.6),
    "screen": 0.5 + 0.45 * np.sign(np.sin(np.indices((512, 512)).sum(0) / 1.2) * np.sin(np.arange(512) / 1.2)),
}


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("options", [{}, {"soft": True}], ids=str)
def test_a_part_stays_and_the_page_around_it_is_read_as_without_it(
    page: np.ndarray, kind: str, options: dict[str, object]
) -> None:
    pasted = with_part(page, PARTS[kind])
    plain = restore.denoise(page, **options)
    found, solution = restore.denoise(pasted, return_solution=True, **options)
    assert solution.outcome is Outcome.RESTORED
    assert (found[PLACE] == pasted[PLACE]).mean() >= 0.95
    assert any("stays as it was" in note for note in solution.notes)
    assert 0.1 < 1 - solution.facts.page < 0.25
    far = np.ones(page.shape, bool)
    far[PLACE[0].start - 32 : PLACE[0].stop + 32, PLACE[1].start - 32 : PLACE[1].stop + 32] = False
    assert np.mean(abs(found[far].astype(int) - plain[far]) > 64) < 0.003


@pytest.mark.parametrize("kind", [None, *PARTS])
def test_a_part_that_the_rules_of_pages_take_for_one_is_read(
    page: np.ndarray, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the prior of parts says, such as of a stain with text on it."""
    said = np.zeros(page.shape, bool)
    said[PLACE] = True
    monkeypatch.setattr(room, "other_parts", lambda values, engine, beside: said)
    seen = page if kind is None else with_part(page, PARTS[kind])
    reading = read(Observed(seen / 255, Damage()), None, Engines(Options()), False, lambda share: None, careful=True)
    if kind is None:
        assert reading.other is None
    else:
        assert reading.other is not None and (reading.other == said).all()


@pytest.mark.parametrize("darker", [0.05, 0.3])
def test_a_blank_part_is_page_if_it_is_as_light_as_the_paper_around_it(darker: float) -> None:
    paper, shade = np.ones((300, 400)), np.linspace(0.95, 0.6, 400)
    paper[::20, 30:370:3] = 0.0
    grey = shade * np.where(paper > 0.5, 1, 0.2) + np.random.default_rng(0).normal(0, 0.01, paper.shape)
    part = np.zeros(paper.shape, bool)
    part[100:220, 100:260] = True
    paper[part] = 1.0
    grey[part] = (shade * np.ones((300, 1)) - darker)[part]
    assert room._no_page(grey, paper, part, None).any() == (darker > 0.2)
    # What is hidden tells nothing of its levels.
    hidden = np.zeros(paper.shape, bool)
    hidden[100:220, 108:252] = True
    grey[hidden] = (shade * np.ones((300, 1)))[hidden]
    assert room._no_page(grey, paper, part, hidden).any() == (darker > 0.2)


def test_what_others_read_of_a_page_leaves_parts_as_they_were() -> None:
    """A code beside a photograph: full of ink, so that others read it."""
    code = np.random.default_rng(0).random((40, 30)) < 0.5
    grey = np.full((440, 640), 230.0)
    grey[20:420, 20:320] = np.where(code.repeat(10, 0).repeat(10, 1), 40, 230)
    grey[100:340, 350:620] = np.rint(255 * PHOTOGRAPH[100:340, 150:420])
    levels = np.uint8((grey + np.random.default_rng(1).normal(0, 4, grey.shape)).clip(0, 255))
    found, solution = restore.denoise(levels, return_solution=True)
    assert solution.facts.crowded > CROWDED.limit and not solution.model.startswith("conv-scan")
    assert (found[110:330, 360:610] == levels[110:330, 360:610]).mean() >= 0.95
    assert not any("filled" in note for note in solution.notes)
    assert ((found[20:420, 20:320] < 128) == code.repeat(10, 0).repeat(10, 1)).mean() > 0.999


def test_hidden_pixels_of_a_part_do_not_count(page: np.ndarray) -> None:
    """Screens of dots under a mask leave the print around them."""
    grey, paper = page / 255, np.ones(page.shape)
    paper[grey < 0.4] = 0.02
    part, hidden = (np.zeros(page.shape, bool) for _ in range(2))
    part[PLACE] = hidden[200:280, 140:290] = True
    paper[hidden] = np.indices(page.shape).sum(0)[hidden] % 2
    assert room._no_page(grey, paper, part, None).any()
    assert not room._no_page(grey, paper, part, hidden).any()


@pytest.mark.usefixtures("fonts")
def test_pages_have_no_such_parts() -> None:
    for number in range(4):
        grey, _ = scan(families_for_tests(), 12, number, (512, 512))
        assert other_parts(grey / 255, Engines(Options()).parts).mean() < 0.01


@dataclass
class Counted:
    """Opens the priors of pages, and counts how often the one that reads is asked for."""

    engines: Engines = field(default_factory=lambda: Engines(Options()))
    reads: int = 0

    @property
    def parts(self) -> PictureEngine:
        return self.engines.parts

    @property
    def reader(self) -> PictureEngine:
        self.reads += 1
        return self.engines.reader


def test_a_photograph_is_told_before_it_is_read_unless_it_is_called_a_page() -> None:
    for p, reads in (("auto", 0), ("scan", 1)):
        readers = Counted()
        whole = read(Observed(WHOLE, Damage(p)), None, readers, False, lambda share: None, careful=True)
        assert readers.reads == reads
        assert whole.other is None and (p == "scan" or whole.facts.page < 0.5)
        assert (whole.sheet is None) == (p == "auto")
    _, solution = restore.denoise(np.uint8(255 * WHOLE), return_solution=True)
    assert solution.status is Status.NOT_INK


def test_light_ink_has_parts_too(page: np.ndarray) -> None:
    pasted = 255 - with_part(page, PHOTOGRAPH[100:, 150:])
    found, solution = restore.denoise(pasted, invert=True, return_solution=True)
    assert (found[PLACE] == pasted[PLACE]).mean() >= 0.95 and solution.facts.page < 0.9


def test_what_is_called_a_page_is_one_as_a_whole(page: np.ndarray) -> None:
    """A part of an old page that is taken for a photograph would be lost to whoever asked for its ink."""
    found, solution = restore.denoise(with_part(page, PHOTOGRAPH[100:, 150:]), p="scan", return_solution=True)
    assert set(np.unique(found)) <= {0, 255} and np.isnan(solution.facts.page)


def test_a_part_that_fills_its_box_is_that_box() -> None:
    """At the edge of a page, too; but the table that a page lies on must not become the page."""
    box = np.zeros((70, 80), bool)
    box[0:45, 30:70] = True
    torn = box.copy()
    torn[0:10, 40:45] = torn[35:45, 30:33] = torn[20:24, 50:55] = False
    assert (_parts(0.6 * torn) == box).all()
    for table in (np.tri(70, 80, 5, bool), np.rot90(np.tri(80, 70, -5, bool))):
        assert table.mean() < BOXED and (_parts(0.95 * table) == table).all()


def test_a_part_has_a_core() -> None:
    narrow = np.zeros((70, 80))
    narrow[:, 20:36] = 0.95
    assert not _parts(narrow).any()
    # As sure as they are where they are: most around some pixel have to be likelier than not.
    for share, found in ((0.97, True), (0.8, False)):
        speckled = np.random.default_rng(0).random((70, 80)) < share
        assert _parts(0.95 * speckled).any() == found
