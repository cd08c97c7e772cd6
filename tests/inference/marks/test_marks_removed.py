"""Marks are removed where they are asked for or sure, and all else stays to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from enumerated import ANY_SIZE, SHAPE, FieldEngine, Opened, small_machine
from marked_pages import HEIGHT, TEXT, WIDTH, dirty, dotted
from PIL import Image

import restore as package
from restore.channels.damage import Damage, Observed
from restore.errors import UsageError
from restore.inference.candidates import Prior
from restore.inference.case import Case
from restore.inference.decision.rules import Ask
from restore.inference.marks import kinds, removal
from restore.inference.marks.pieces import Pieces, around
from restore.inference.marks.scene import Mark
from restore.inference.marks.witness import Witness
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.restored import Level, Restored, as_it_came
from restore.inference.scans.reading import Reading
from restore.status import Outcome, Status

OLD_PAGE = Path(__file__).parents[3] / "assets" / "old-page.png"

FIELD = FieldEngine.of(small_machine(scale=0.0), SHAPE, **ANY_SIZE)
RULE = np.zeros((HEIGHT, WIDTH), bool)
RULE[148:150, 10:410] = True
# Where no letter crosses or touches the rule: what does stays, and with it a stub.
BARE_RULE = RULE & (around(TEXT, 3, 0) == 0)


def answer(ink: np.ndarray, **options: object) -> Restored:
    picture = Observed((~ink).astype(float), Damage())
    (found,) = restore([picture], Options(**options), Opened((FIELD,)))  # type: ignore[arg-type]
    return found


def test_windows_say_what_the_whole_picture_says() -> None:
    ink, _ = dirty(30)
    pieces, witness = Pieces.of(ink, 20), Witness(lambda: Prior(FIELD))
    odds = witness.log_odds(~ink, pieces)
    assert np.isfinite(odds).all() and len(odds) == pieces.count
    for number in range(0, pieces.count, 17):
        hidden = pieces.labels == number
        means = FIELD.solve((~ink).astype(np.float32)[None], Damage(hidden=hidden[None])).means[0][hidden]
        own = means if not pieces.dark[number] else 1 - means
        assert odds[number] == pytest.approx(np.log(own / (1 - own)).mean(), abs=0.05)


def test_pieces_of_a_heap_are_hidden_together() -> None:
    ink, _ = dirty(30)
    pieces, witness = Pieces.of(ink, 20), Witness(lambda: Prior(FIELD))
    odds = witness.log_odds(~ink, pieces, together=True)
    means = FIELD.solve((~ink).astype(np.float32)[None], Damage(hidden=pieces.inside[None])).means[0]
    for number in range(0, pieces.count, 17):
        own = means[pieces.labels == number]
        own = own if not pieces.dark[number] else 1 - own
        assert odds[number] == pytest.approx(np.log(own / (1 - own)).mean(), abs=0.05)


def test_a_page_with_bare_ground_chooses_no_prior_and_one_that_none_knows_has_no_specks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[int]()
    monkeypatch.setattr(removal, "choose", lambda pictures, *others, **more: asked.append(1) or unknown)
    unknown = [SimpleNamespace(candidate=Prior(FIELD), damage=Damage(0.1), level=None, ahead=-1.0, pixels=99)]
    assert answer(TEXT, remove="specks").outcome is Outcome.CLEAN and not asked
    assert answer(dirty(30)[0], remove="specks").outcome is Outcome.CLEAN and len(asked) == 1
    assert answer(dirty(30)[0], remove="specks", specks=20).outcome is Outcome.CLEAN and len(asked) == 2


def test_only_marks_change_and_the_answer_says_where_they_were() -> None:
    found = answer(TEXT | RULE, remove="lines")
    assert found.outcome is Outcome.RESTORED and set(found.marks) == {"lines"}
    assert found.marks["lines"][BARE_RULE].mean() > 0.98
    changed = (found.estimate > 0.5) == (TEXT | RULE)
    assert not (changed & ~found.marks["lines"]).any() and changed[BARE_RULE].mean() > 0.9
    np.testing.assert_array_equal(found.replaced, found.marks["lines"])


def test_several_kinds_go_together_and_those_that_are_not_named_stay() -> None:
    ink = TEXT | RULE
    ink[:12] = True
    both, one = answer(ink, remove="border,lines"), answer(ink, remove="border")
    assert set(both.marks) == {"border", "lines"} and set(one.marks) == {"border"}
    assert (one.estimate[RULE] < 0.5).all() and (one.estimate[:12] > 0.5).mean() > 0.9


def test_a_picture_without_marks_comes_back_as_it_came() -> None:
    found = answer(TEXT, remove="border,dots,lines")
    assert found.outcome is Outcome.CLEAN and found.reason and not found.marks
    np.testing.assert_array_equal(found.estimate > 0.5, ~TEXT)


def test_beneath_a_border_lies_ground_whatever_a_prior_expects() -> None:
    ink = TEXT.copy()
    ink[:12] = True
    alone, grey = answer(ink, remove="border"), np.where(ink, 60, 230).astype(np.uint8)
    np.testing.assert_array_equal(alone.estimate > 0.5, ~TEXT)
    assert alone.outcome is Outcome.RESTORED and alone.notes == ("1 black border was removed",)
    np.testing.assert_array_equal(package.denoise(grey, remove="border"), np.where(TEXT, 60, 230))


@pytest.mark.parametrize(("level", "noisy"), [(0.05, True), (0.002, False), (None, False)])
def test_marks_that_cannot_be_told_from_noise(level: float | None, noisy: bool) -> None:
    ink = ~np.array(TEXT)
    case = SimpleNamespace(original=Observed(ink.astype(float), Damage()), options=Options(remove="lines,specks"))
    usual = SimpleNamespace(unchanged=level is None, level=level and Level("p", level))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removal, "marks_of", lambda *_: [])
        found = removal.without(case, (), lambda *_: usual)  # type: ignore[arg-type]
    assert (found.outcome is Outcome.NOT_SURE) is noisy
    words = "lines or specks cannot be told from its noise (p = 0.05 was found)"
    none = "no lines or specks were found; if you see specks, say how large"
    assert found.reason.startswith(words if noisy else none)


def test_one_mark_is_left_and_several_are() -> None:
    none = np.zeros((2, 2), bool)
    for count, words in (
        (1, "1 line was left; remove='lines' removes it"),
        (2, "2 lines were left; remove='lines' removes them"),
    ):
        assert removal.left([Mark("lines", none, count)]) == [words]


def test_specks_whose_size_has_to_be_said_are_named_with_it() -> None:
    none = np.zeros((2, 2), bool)
    specks = Mark("specks", none, 9, largest=30)
    assert removal.left([specks]) == ["9 specks were left; specks=30 removes them"]
    words = "1 line and 9 specks were left; remove='lines' specks=30 removes them"
    assert removal.left([Mark("lines", none, 1), specks]) == [words]


@pytest.mark.parametrize("fits", [True, False])
def test_marks_that_are_sure_go_or_are_named_beside_others(fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = Observed((~(TEXT | RULE)).astype(float), Damage())
    case = Case(0, picture, Reading(picture), (FIELD,), Options(), False, Ask.FIND)
    clean = as_it_came(picture, "")
    filled = replace(clean, outcome=Outcome.RESTORED if fits else Outcome.NOT_SURE)
    sure, other = Mark("dots", RULE, 3, sure=True), Mark("lines", RULE, 1)
    monkeypatch.setattr(removal, "marks_of", lambda *_: [sure, other])
    found = removal.looked_over(case, clean, [], lambda *_: filled)
    assert found.notes == (
        *(removal.removed([sure]) if fits else ()),
        *removal.left([other] if fits else [sure, other]),
    )
    assert bool(found.marks) is fits and not found.not_sure


def test_marks_are_hidden_beside_a_mask() -> None:
    hole = np.zeros((HEIGHT, WIDTH), bool)
    hole[60:64, 60:70] = True
    picture = Observed((~(TEXT | RULE)).astype(float), Damage(hidden=hole))
    (found,) = restore([picture], Options(remove="lines"), Opened((FIELD,)))
    np.testing.assert_array_equal(found.replaced, hole | found.marks["lines"])


@pytest.mark.parametrize("wrong", ["dust", "", "specks,dust", "none,dots", 3])
def test_kinds_that_are_none(wrong: object) -> None:
    with pytest.raises(UsageError):
        Options(remove=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -3, 2.5, True, "many"])
def test_sizes_that_are_none(wrong: object) -> None:
    with pytest.raises(UsageError):
        Options(specks=wrong)  # type: ignore[arg-type]


def test_a_size_asks_for_specks() -> None:
    assert Options(specks=9).marks == ("specks",) and Options(specks=9, remove="dots").marks == ("dots", "specks")
    assert Options().marks == Options(remove="none").marks == () and len(Options(remove="all").marks) == 4


def test_photographs_have_no_marks() -> None:
    with pytest.raises(UsageError):
        package.denoise(np.random.default_rng(0).random((64, 64)), "em-photographs", sigma=0.1, remove="specks")


@pytest.mark.thorough
def test_dirt_goes_from_a_page_told_and_untold_and_content_stays() -> None:
    ink, dirt = dirty(150)
    told, untold = (
        package.denoise(~ink, "conv-text", return_solution=True, **how)[1] for how in ({"remove": "specks"}, {})
    )
    for found in (told, untold):
        left = (found.estimate > 0.5) == TEXT
        assert left.sum() < 0.5 * dirt.sum() and (left & TEXT).sum() < 0.1 * dirt.sum()
        assert not ((found.estimate > 0.5) == ink)[~found.marks["specks"]].any()


@pytest.mark.thorough
def test_dots_behind_print_go_untold_and_a_clean_page_stays() -> None:
    dots = dotted(0.12)
    found = package.denoise(~(TEXT | dots), "conv-text", return_solution=True)[1]
    assert set(found.marks) == {"dots"} and ((found.estimate > 0.5) == TEXT).sum() < 0.15 * dots.sum()
    kept = package.denoise(~(TEXT | dots), "conv-text", remove="none", return_solution=True)[1]
    assert not kept.marks
    clean = package.denoise(~TEXT, "conv-text", return_solution=True)[1]
    assert not clean.marks and clean.outcome is Outcome.CLEAN


def test_find_marks_gives_a_mask_for_every_kind_and_changes_nothing() -> None:
    ink = TEXT | RULE
    before = ink.copy()
    masks = package.find_marks(~ink, "lines,border")
    assert list(masks) == ["border", "lines"] and not masks["border"].any()
    assert masks["lines"].dtype == bool and masks["lines"].shape == ink.shape
    assert masks["lines"][BARE_RULE].mean() > 0.98
    np.testing.assert_array_equal(ink, before)
    grey = np.where(ink, 60, 230).astype(np.uint8)
    np.testing.assert_array_equal(package.find_marks(Image.fromarray(grey), "lines")["lines"], masks["lines"])
    for image in ([ink, ink], np.zeros((20, 20, 3), np.uint8)):
        with pytest.raises(UsageError):
            package.find_marks(image, "lines")


def test_grey_levels_outside_marks_stay_and_their_soft_edges_go() -> None:
    grey = np.where(TEXT | RULE, 20, 240).astype(np.uint8)
    grey[147, 10:410] = np.where(TEXT[147, 10:410], 20, 150)
    clean, found = package.denoise(grey, "conv-text", remove="lines", return_solution=True)
    changed = clean != grey
    assert (changed <= found.replaced).all() and (clean[147, 10:410] > 200)[~TEXT[147, 10:410]].mean() > 0.9


def test_the_command_writes_where_marks_were(run: Callable[..., int], tmp_path: Path) -> None:
    source, mask, result = (tmp_path / name for name in ("page.png", "mask.png", "clean.png"))
    Image.fromarray(~(TEXT | RULE)).save(source)
    words = ("denoise", source, "--model", "conv-text", "--remove", "lines", "-o", result, "--mask-output", mask)
    assert run(*words) == 0
    with Image.open(mask) as image:
        white = np.asarray(image.convert("L")) > 127
    assert white[BARE_RULE].mean() > 0.98
    with Image.open(result) as image:
        assert ((np.asarray(image.convert("L")) > 127) != ~(TEXT | RULE))[~white].sum() == 0
    assert run(*words) != 0  # both exist
    assert run("denoise", source, "--remove", "dust", "-o", tmp_path / "other.png") == 2


def test_marks_on_a_grey_page_are_judged_by_priors_of_black_and_white() -> None:
    """The prior that reads the page knows no flips."""
    page = np.asarray(Image.open(OLD_PAGE).convert("L"))[:200, :300].copy()
    page[20:24, 20:25] = 20
    result, solution = package.denoise(page, remove="specks", return_solution=True)
    assert result.shape == page.shape and solution.status is Status.CONVERGED
    assert package.find_marks(page, "specks").keys() == {"specks"}


def dirty_scan() -> tuple[np.ndarray, np.ndarray]:
    """A page with dirt, as a scanner sees it, (H, W), and where the dirt is."""
    ink, dirt = dirty(150)
    return (np.where(ink, 60, 215) + np.random.default_rng(0).normal(0, 6, ink.shape)).astype(np.uint8), dirt


def test_a_grey_page_names_the_marks_that_its_reader_leaves_and_keeps_them() -> None:
    page, dirt = dirty_scan()
    answers = [package.denoise(page, return_solution=True, **how)[1] for how in ({}, {"remove": "none"})]
    named, silent = [[note for note in found.notes if "left;" in note] for found in answers]
    assert len(named) == 1 and named[0].endswith("left; remove='specks' removes them") and not silent
    np.testing.assert_array_equal(answers[0].estimate, answers[1].estimate)
    assert (answers[0].estimate[dirt] < 128).mean() > 0.5 and not answers[0].marks


def test_a_reader_of_pages_that_is_named_judges_no_specks() -> None:
    page, _ = dirty_scan()
    _, found = package.denoise(page, "conv-scan", return_solution=True)
    assert not [note for note in found.notes if "left;" in note]
    with pytest.raises(UsageError, match="conv-scan"):
        package.denoise(page, "conv-scan", remove="specks")


def test_no_light_streak_is_found_without_a_prior_that_judges_it() -> None:
    picture = Observed((~TEXT).astype(float), Damage())
    reading = Reading(picture, inverted=False)
    case = Case(0, picture, reading, (FIELD,), Options(remove="lines"), False, Ask.FIND)
    asked = list[np.ndarray]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "streaks", lambda ink, expected: asked.append(expected(ink, ink)) or [])
        assert removal.marks_of(case, ()) == []
    assert len(asked) == 2 and not any(map(np.any, asked))


@pytest.mark.parametrize(("inverted", "other"), [(False, False), (False, True), (True, True)])
def test_marks_are_named_that_are_in_the_answer_and_in_no_photograph(inverted: bool, other: bool) -> None:
    photograph = np.zeros((HEIGHT, WIDTH), bool)
    photograph[200:] = other
    reading = Reading(
        Observed(np.zeros((HEIGHT, WIDTH)), Damage()), inverted=inverted, other=photograph if other else None
    )
    case = Case(0, reading.picture, reading, (), Options(), False, Ask.FIND)
    white = TEXT if inverted else ~TEXT
    found = replace(as_it_came(Observed(white.astype(float), Damage()), ""), notes=("read",))
    seen = list[np.ndarray]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removal, "find", lambda picture, *_, **__: seen.append(picture) or [])
        assert removal.named(case, found, ()).notes == found.notes
        unsure = replace(found, outcome=Outcome.NOT_SURE)
        assert removal.named(case, unsure, ()) is unsure
    (picture,) = seen
    np.testing.assert_array_equal(picture[:200], white[:200])
    assert (picture[200:] != inverted).all() or not other


def test_what_is_named_on_a_grey_page_goes_if_it_is_asked_for_and_the_page_is_read_all_the_same() -> None:
    page, dirt = dirty_scan()
    _, read = package.denoise(page, return_solution=True)
    clean, found = package.denoise(page, remove="specks", return_solution=True)
    assert clean[dirt].mean() > read.estimate[dirt].mean() + 20 and found.marks["specks"][dirt].mean() > 0.5
    np.testing.assert_array_equal(found.estimate[~found.marks["specks"]], read.estimate[~found.marks["specks"]])
    assert "removed" in " ".join(found.notes) and not [note for note in found.notes if "left;" in note]
    np.testing.assert_array_equal(package.find_marks(page, "specks")["specks"], found.marks["specks"])


def test_a_grey_page_is_read_though_no_marks_are_found_on_it() -> None:
    page = (np.where(TEXT, 60, 215) + np.random.default_rng(0).normal(0, 6, TEXT.shape)).astype(np.uint8)
    _, read = package.denoise(page, return_solution=True)
    _, found = package.denoise(page, remove="border", return_solution=True)
    np.testing.assert_array_equal(found.estimate, read.estimate)
    assert any(note.startswith("no black borders were found") for note in found.notes)
