"""The local page shows which marks would go, in colour, before they go; and says what it can do in its own words."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pages import ASSETS, Visit, expect, png, upload
from PIL import Image

import restore
from restore.channels.damage import Damage, Observed
from restore.inference.case import Case
from restore.inference.decision.remedies import REMEDIES, remedy
from restore.inference.marks.pieces import around
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.registry import MARKS
from restore.status import Status

RULES = ASSETS / "page-rules.png"


def levels() -> np.ndarray:
    with Image.open(RULES) as image:
        return np.asarray(image.convert("L"))


def idle(visit: Visit) -> str:
    """The status once all is done."""
    expect(visit.at("restore")).to_have_attribute("aria-busy", "false")
    return str(visit.at("status").inner_text())


def look(visit: Visit, *kinds: str) -> str:
    """Look for some kinds of marks alone."""
    for name, words in MARKS.items():
        visit.page.get_by_label(words.many, exact=True).set_checked(name in kinds)
    visit.at("show-marks").click()
    visit.wait_for(re.compile("found|Found"))
    return idle(visit)


def test_marks_are_shown_in_colour_before_they_go(served: Visit) -> None:
    page = levels()
    upload(served, "rules.png", RULES.read_bytes())
    served.wait_for("rules.png is open")
    mask = restore.find_marks(page, "lines")["lines"]
    said = look(served, "lines")
    counted = re.fullmatch(r"Found: (\d+ lines)\. Nothing is removed yet\.", said)
    assert counted and served.at("found-kinds").inner_text() == counted[1]
    shown = served.shown("after", page.shape[1])
    coloured = shown.max(2) != shown.min(2)
    assert coloured[mask].all() and len(np.unique(shown[mask], axis=0)) == 1
    # Around what goes there is a rim of a pixel, so that specks are seen on a large page.
    assert not coloured[around(mask, 1) == 0].any() and coloured.sum() > mask.sum()
    np.testing.assert_array_equal(served.shown("image", page.shape[1])[..., 0], page)
    expect(served.at("download")).to_be_disabled()
    expect(served.at("after-caption")).to_contain_text("would go")
    served.at("remove-marks").click()
    served.wait_for(f"{counted[1]} were removed")
    idle(served)
    cleaned = restore.denoise(page, remove="lines")
    np.testing.assert_array_equal(served.shown("after", page.shape[1])[..., 0], cleaned)
    np.testing.assert_array_equal(cleaned[~mask], page[~mask])
    expect(served.at("remove-marks")).to_be_hidden()


def test_what_is_shown_is_forgotten_once_it_may_differ(served: Visit) -> None:
    upload(served, "rules.png", RULES.read_bytes())
    served.wait_for("rules.png is open")
    look(served, "lines")
    served.page.get_by_label(MARKS["dots"].many).check()
    expect(served.at("remove-marks")).to_be_hidden()
    assert look(served, "lines").startswith("Found")
    served.at("image").click()  # draws
    expect(served.at("remove-marks")).to_be_hidden()
    for words in MARKS.values():
        served.page.get_by_label(words.many, exact=True).uncheck()
    served.at("show-marks").click()
    assert "Choose" in served.refused()
    served.at("clear-image").click()
    assert look(served, "border") == "No such marks were found."


def test_without_a_server_there_is_no_control_of_marks(reader: Visit) -> None:
    for name in ("marks", "show-marks", "remove-marks", "damaged-by"):
        expect(reader.at(name)).to_be_hidden()


def test_a_scan_is_read_and_its_grey_levels_are_shown(served: Visit) -> None:
    with Image.open(ASSETS / "page-scan.png") as image:
        scan = image.convert("L").crop((0, 0, 120, 90))
    upload(served, "scan.png", png(scan))
    served.wait_for("scan.png is open")
    served.at("kind").select_option("scan")
    expect(served.at("flips")).to_be_hidden()
    assert "read as a page of dark ink on light paper" in served.restore()
    for view, soft in (("Black and white", False), ("Grey levels", True)):
        served.tick(view)
        expected = restore.denoise(np.asarray(scan), p="scan", soft=soft)
        np.testing.assert_array_equal(served.shown("after", 120)[..., 0], expected)


def test_advice_names_only_what_the_page_can_do(reader: Visit) -> None:
    noise = np.random.default_rng(0).random((64, 64))
    options = Options(invert=True)
    case = Case.of(0, Observed(noise, Damage()), options, Engines(options), lambda share: None)
    told = [one.words(case) for one in REMEDIES]
    told += [remedy(case, why, lambda *_: pytest.fail("is tried")) for why in (Status.DIVERGED, Status.CLASSES)]
    script = """async (told) => {
        const { advice, noted } = await import("./words.js");
        return [told.map(advice), noted("3 specks were left; remove='specks' removes them")];
    }"""
    said, note = reader.page.evaluate(script, told)
    assert not any(re.search(r"=|--|`|\bmodel\b|force", words) for words in [*said, note]), said
    kinds = reader.at("kind").locator("option").all_inner_texts()
    named = {words for text in [*said, note] for words in re.findall("“(.*?)”", text)}
    assert named <= {*kinds, str(reader.at("show-marks").text_content())} and len(named) == 3
