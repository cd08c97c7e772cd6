"""The facts at the head of a card: YAML that the Hugging Face hub understands, beside the text that people read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from priors import grey_prior, random_prior

from restore import zoo
from restore.zoo.card import LICENCES, with_facts, without_facts

yaml: Any = pytest.importorskip("yaml", reason="needs a reader of YAML; it comes with the extra docs")

FOLDERS = [folder for folder in sorted(zoo.published_folder().iterdir()) if (folder / zoo.WEIGHTS).exists()]
TEXT = "# mine\n\nText with --- in it.\n\n---\n\nand a rule.\n"


def facts_of(card: str) -> dict[str, Any]:
    opening, head, _ = card.split("---\n", 2)
    assert not opening
    read: dict[str, Any] = yaml.safe_load(head)
    return read


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_published_card_has_the_facts_of_its_prior(folder: Path) -> None:
    card, header = (folder / zoo.CARD).read_text("utf-8"), zoo.describe(folder)
    # After `python training/restamp.py` they are.
    assert card == with_facts(card, header)
    facts, text = facts_of(card), zoo.card_of(folder)
    assert card.endswith(text) and text.startswith(f"# {folder.name}\n") and header.recipe[:16] in text
    assert facts["license"] == header.licence.lower() and facts["datasets"] == [header.data]
    assert facts["library_name"] == "restore-prior" and facts["pipeline_tag"] == "image-to-image"
    assert ("greyscale" in facts["tags"]) == header.grey and len(set(facts["tags"])) == 4
    measured = {"psnr"} if header.kind.photographs else {"psnr", "ssim"} if header.grey else {"error_rate"}
    assert measured <= set(facts["metrics"])


def test_facts_are_put_once_before_the_text_which_stays() -> None:
    header = random_prior().description
    once = with_facts(TEXT, header)
    assert without_facts(once) == TEXT and with_facts(once, header) == once
    assert facts_of(once)["license"] in LICENCES and "metrics" not in facts_of(once)
    assert facts_of(with_facts(once, grey_prior().description)) != facts_of(once)
    assert facts_of(with_facts(f"{TEXT}| task | PSNR, dB | SSIM |\n", header))["metrics"] == ["psnr", "ssim"]


@pytest.mark.parametrize("name", ['a "quoted": name', "no", "- list", "é\\n", "#", "1.0"])
def test_what_is_not_plain_yaml_comes_back_as_it_is(name: str) -> None:
    header = replace(random_prior().description, data=name, licence=name)
    facts = facts_of(with_facts(TEXT, header))
    assert facts["datasets"] == [name] and (facts["license"], facts["license_name"]) == ("other", name)


def test_every_prior_that_is_saved_has_them_and_info_shows_the_text(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    zoo.save(tmp_path / "mine", random_prior(), TEXT)
    assert facts_of((tmp_path / "mine" / zoo.CARD).read_text("utf-8"))["datasets"] == ["noise"]
    assert zoo.card_of(tmp_path / "mine") == TEXT
    assert run("info", tmp_path / "mine") == 0
    assert capsys.readouterr().out == TEXT
