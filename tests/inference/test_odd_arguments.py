"""Arguments of types and sizes that nothing can use are refused like others out of range."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from restore.channels.damage import Damage
from restore.devices import pick_device
from restore.errors import UsageError


@pytest.mark.parametrize("p", [10**400, torch.full((2, 2), 0.1, requires_grad=True)], ids=["huge", "grad"])
def test_flips_that_are_no_numbers(p: Any) -> None:
    with pytest.raises(UsageError):
        Damage.of(p=p)


def test_no_device_at_all() -> None:
    with pytest.raises(UsageError):
        pick_device(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["mps", "quantum"])
def test_a_device_that_torch_lacks_is_named(device: str) -> None:
    with pytest.raises(UsageError) as caught:
        pick_device(device)
    assert device in str(caught.value)
