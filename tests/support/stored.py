"""Small priors of every kind to store, and ways to damage what was stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from machines import random_rbm, seeded
from priors import SPIKED, TRUNCATED, grey_prior
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from restore.errors import ModelError
from restore.priors import RBM, ConditionalRBM
from restore.priors.bits import pack
from restore.zoo import WEIGHTS, TrainedPrior, load, published_folder
from restore.zoo.description import Description
from restore.zoo.inference import Inference

PUBLISHED = published_folder()


def prior_of(name: str = "small", shape: tuple[int, int] = (3, 5), hidden: int = 4, modes: int = 6) -> TrainedPrior:
    pixels = shape[0] * shape[1]
    return TrainedPrior(
        Description(
            name, shape, 127, "made up", "tap", "0123", Inference(modes=modes, starts=3, tol=1e-5), hidden=hidden
        ),
        random_rbm(pixels, hidden, dtype=torch.float32),
        torch.rand(pixels, generator=seeded(1)) * 0.8 + 0.1,
        pack(torch.bernoulli(torch.full((modes, pixels), 0.5), generator=seeded(2))),
    )


def conditional_prior(name: str = "small") -> TrainedPrior:
    """A conditional prior; its inputs, unlike its weights, are exact in half precision."""
    plain = prior_of(name, modes=0)
    draw = torch.randn(15 + 4, 15, generator=seeded(3)).half().float()
    header = replace(
        plain.description,
        family="crbm",
        task="patch:2:0.5",
        inference=Inference("mixed_product", 9, 1e-3, 0.0, modes=0, starts=0),
    )
    assert isinstance(plain.machine, RBM)
    return replace(plain, description=header, machine=ConditionalRBM(plain.machine, draw[:15], draw[15:]))


def same(first: TrainedPrior, second: TrainedPrior) -> bool:
    tensors = [
        {**prior.machine.parameters, "pixel_means": prior.pixel_means, "modes": prior.modes}
        for prior in (first, second)
    ]
    return first.description == second.description and all(
        torch.equal(value, tensors[1][name]) and value.dtype == tensors[1][name].dtype
        for name, value in tensors[0].items()
    )


# --- round trips ---


GENERAL: dict[str, Callable[[], TrainedPrior]] = {
    "spiked": lambda: grey_prior(SPIKED, shape=(3, 5)),
    "gaussian": lambda: grey_prior(TRUNCATED, "gaussian", shape=(3, 5)),
    "deep": lambda: grey_prior(SPIKED, "gauss-bernoulli", shape=(3, 5), deeper=(3, 2)),
    "deep-binary": lambda: grey_prior(deeper=(3,), shape=(3, 5), visible="bernoulli"),
}


# --- damage ---


Header = dict[str, Any]
Tensors = dict[str, Tensor]


def refused(call: Callable[[], object]) -> str:
    """The message of a prior that is refused: one printable line that one can read, with exit code 4."""
    with pytest.raises(ModelError) as caught:
        call()
    text = str(caught.value)
    assert caught.value.exit_code == 4 and text.isprintable() and len(text) < 1000
    return text


def refused_prior(folder: Path, subject: str = "") -> None:
    """Loading raises one line that begins with the file and names the subject: a tensor, a key or a limit."""
    with pytest.raises(ModelError) as caught:
        load(folder)
    assert caught.value.subject == str(folder / WEIGHTS) and subject in refused(lambda: load(folder))


def rewritten(folder: Path, tensors: Callable[[Tensors], Tensors] = lambda t: t, **header: str | None) -> None:
    """Write the prior's file again with other tensors, or other header fields (None removes one)."""
    path = folder / WEIGHTS
    with safe_open(path, framework="numpy") as stored:
        old = stored.metadata()
    new = {key: value for key, value in (old | header).items() if value is not None}
    save_file({name: value.clone() for name, value in tensors(load_file(path)).items()}, path, new)


def reheaded(folder: Path, change: Callable[[Header], str | Header | None]) -> None:
    """Write a weights file with another header, its tensors as they are."""
    content = (folder / WEIGHTS).read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    changed = change(header)
    text = (changed if isinstance(changed, str) else json.dumps(changed or header)).encode()
    (folder / WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + content[start:])


def inference(**settings: str) -> dict[str, str]:
    """The solver's settings as in a header, some of them other JSON."""
    whole = {"solver": '"tap"', "max_iter": "1000", "modes": "6", "starts": "3", **settings}
    return {"inference": "{" + ", ".join(f'"{key}": {value}' for key, value in whole.items()) + "}"}


def without(name: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {key: value for key, value in tensors.items() if key != name}


def replaced(name: str, change: Callable[[Tensor], Tensor]) -> Callable[[Tensors], Tensors]:
    return lambda tensors: tensors | {name: change(tensors[name])}


def filled(value: float) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        tensor = tensor.clone()
        tensor.view(-1)[1] = value
        return tensor

    return change
