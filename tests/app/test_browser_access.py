"""The local page is for everyone: by keyboard, with a screen reader, and on a phone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import ASSETS, Visit, expect, upload


@pytest.mark.thorough
def test_all_of_it_works_by_keyboard(visit: Visit) -> None:
    keys = visit.page.keyboard
    named = """each => each.type === "radio" ? each.name : each.id || each.tagName"""
    controls = visit.page.locator("button, select, input, canvas[tabindex], summary, a")
    usable = """each => !each.disabled && !each.closest("[hidden]")"""
    wanted = {each.evaluate(named) for each in controls.all() if each.evaluate(usable)}
    reached = set()
    for _ in range(len(wanted) + 3):
        keys.press("Tab")
        focused = visit.page.locator(":focus")
        if focused.count():  # else it is the browser's turn
            assert focused.evaluate('each => each.matches(":focus-visible")')
            reached.add(focused.evaluate(named))
    assert wanted <= reached
    visit.page.reload()
    visit.wait_for("Ready.")
    keys.press("Tab")
    keys.press("Enter")  # skip to the image
    while visit.page.evaluate("document.activeElement.id") != "image":
        keys.press("Tab")
    before = visit.image()
    keys.press("e")
    expect(visit.page.get_by_role("radio", name="Erase")).to_be_checked()
    for key in ("[", "ArrowDown", "Space", "Shift+ArrowRight", "Shift+ArrowRight"):
        keys.press(key)
    expect(visit.at("cursor")).to_have_text("Row 16, column 17, black")
    keys.press("m")
    for key in ("ArrowDown", "Space"):
        keys.press(key)
    expect(visit.at("cursor")).to_have_text("Row 17, column 17, masked")
    keys.press("Enter")
    visit.wait_for("of pixels changed.")
    shown = visit.shown("before")
    assert not shown[15, 14:17].any() and tuple(shown[16, 16]) == (59, 111, 181)
    unchanged = np.ones((28, 28), bool)
    unchanged[15, 14:17] = unchanged[16, 16] = False
    np.testing.assert_array_equal(shown[unchanged][:, 0], before[unchanged])
    for _ in range(4):
        keys.press("Control+z")
    keys.press("Control+Enter")
    expect(visit.at("before-caption")).to_have_text("Before")
    np.testing.assert_array_equal(visit.shown("before")[..., 0], before)


@pytest.mark.thorough
def test_every_control_has_a_name(guest: Visit) -> None:
    session = guest.context.new_cdp_session(guest.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "slider", "radio", "checkbox", "combobox", "image", "img", "application", "link"}
    results = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert len(results) > 15 and all(name for _, name in results), results
    assert guest.page.locator("[role=status], [role=alert], [aria-live]").count() == 3
    assert guest.page.locator("html[lang]").count() == 1


@pytest.mark.thorough
def test_axe_finds_nothing_with_or_without_a_server(guest: Visit, served: Visit) -> None:
    axe = Path(os.environ.get("RESTORE_NODE_MODULES", "node_modules")) / "axe-core" / "axe.min.js"
    if not axe.exists():
        pytest.skip("needs axe-core in RESTORE_NODE_MODULES")
    guest.restore()
    upload(served, "rules.png", (ASSETS / "page-rules.png").read_bytes())
    served.wait_for("rules.png is open")
    served.at("show-marks").click()
    served.wait_for("Nothing is removed yet")
    for visit in (guest, served):
        # Not as a script of the page, which its policy forbids.
        visit.page.evaluate(axe.read_text(encoding="utf-8") + "; undefined")
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            faults = visit.page.evaluate("async () => (await axe.run(document)).violations")
            assert not [f"{fault['id']}: {node['html']}" for fault in faults for node in fault["nodes"]]
        visit.page.emulate_media(color_scheme="no-preference")


@pytest.mark.thorough
def test_marks_are_shown_and_removed_by_keyboard(served: Visit) -> None:
    keys = served.page.keyboard
    upload(served, "rules.png", (ASSETS / "page-rules.png").read_bytes())
    served.wait_for("rules.png is open")

    def reach(name: str) -> None:
        for _ in range(40):
            keys.press("Tab")
            if served.page.evaluate("document.activeElement.id || document.activeElement.value") == name:
                return
        pytest.fail(f"Tab does not reach {name}")

    served.at("prior").focus()
    for kind in ("border", "dots", "specks"):
        reach(kind)
        keys.press("Space")
    reach("show-marks")
    keys.press("Enter")
    served.wait_for("Nothing is removed yet")
    reach("remove-marks")
    keys.press("Enter")
    served.wait_for("were removed")


@pytest.mark.thorough
def test_it_fits_a_phone_in_either_scheme(browser: Any, url: str) -> None:
    visit = Visit(browser, url, viewport={"width": 360, "height": 740})
    visit.restore()
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert visit.at("image").bounding_box()["width"] >= 280
        ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark")
    visit.context.close()
    assert visit.complaints == []
