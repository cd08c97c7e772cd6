"""What the first lines of a report say: whether a prior is worth using, and what may help."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from machines import seeded
from torch import Tensor

from restore.channels import parse_task
from restore.evaluation.evaluate import evaluate
from restore.report.trials import Scores
from restore.report.verdict import advice, verdict

IMAGES = (torch.rand(20, 16, generator=seeded(0)) < 0.5).float()


def scores(task: str, images: Tensor = IMAGES, **shares: float) -> Scores:
    """Of restorers that leave about so much wrong of images of noise."""

    def restorer(share: float) -> Any:
        wrong = torch.rand(images.shape, generator=seeded(1)) < share
        return lambda observed, channel: torch.where(wrong, 1 - images, images)

    done = {
        name: evaluate(restorer(share), images, parse_task(task), (4, 4), seeded(2)) for name, share in shares.items()
    }
    return Scores(parse_task(task), done)


def test_a_prior_that_is_ahead_everywhere_is_worth_using() -> None:
    found = [scores("flip:0.1", mine=0.0, ising=0.2, median=0.4), scores("flip:0.2", mine=0.1, ising=0.5, median=0.3)]
    rivals = [found[0].reports["ising"], found[1].reports["median"]]
    said = verdict("mine", found, "more images")
    assert said.startswith("worth using: wrong pixels after flip:0.1 0.00%, with ising ")
    assert f"with ising {rivals[0].error_all.mean:.2%}; after flip:0.2 " in said
    assert said.endswith(f"with median {rivals[1].error_all.mean:.2%}")


@pytest.mark.parametrize(
    ("second", "words"), [(0.0, "worth using in part"), (0.5, "not worth using yet")], ids=["in-part", "not-yet"]
)
def test_where_it_is_behind_the_remedy_is_told(second: float, words: str) -> None:
    found = [scores("flip:0.1", mine=0.4, ising=0.1), scores("flip:0.2", mine=second, ising=0.2)]
    said = verdict("mine", found, "more images")
    assert said.startswith(f"{words}: ") and said.endswith("; what may help: more images")


def test_a_tie_is_not_ahead() -> None:
    assert verdict("mine", [scores("flip:0.1", mine=0.0, ising=0.0)], "time").startswith("not worth using yet: ")


@pytest.mark.parametrize(("count", "words"), [(1, "1 held-out image"), (9, "9 held-out images")])
def test_few_images_tell_little(count: int, words: str) -> None:
    said = verdict("mine", [scores("flip:0.1", IMAGES[:count], mine=0.0, ising=0.9)], "time")
    assert said.startswith(f"worth using, as far as {words} can tell: ")


@pytest.mark.parametrize(
    ("epoch", "by_heart", "wholes", "expected"),
    [
        (9, False, (), "more time"),
        (2, True, (), "more images"),
        (10, True, (), "more images, for it restores those it has learnt from clearly better, more time"),
        (2, False, ("page",), "larger windows"),
        (2, False, (), "another method"),
    ],
)
def test_what_may_help(epoch: int, by_heart: bool, wholes: tuple[str, ...], expected: str) -> None:
    learnt: Any = SimpleNamespace(
        trained=SimpleNamespace(error=0.1, epoch=epoch), lesson=SimpleNamespace(wholes=wholes), curve=(None,) * 10
    )
    assert advice(learnt, by_heart).startswith(expected)
