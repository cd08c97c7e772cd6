"""What several starts answer is continuous in the flip probability where evidence becomes certain or vanishes."""

from __future__ import annotations

import pytest
import torch
from machines import seeded

from restore.channels import BitFlip
from restore.inference.torch_engine import Engine


@pytest.mark.parametrize("model", ["tap-mnist", "tap-mnist-100"])
@pytest.mark.parametrize(("limit", "near"), [(0.0, 1e-9), (0.5, 0.4999999), (0.5, 0.5000001), (1.0, 1 - 1e-9)])
def test_answers_have_a_limit(model: str, limit: float, near: float) -> None:
    engine = Engine.load(model, "cpu")
    observed = (torch.rand(3, 784, generator=seeded(0)) < torch.tensor([[0.05], [0.2], [0.5]])).float()
    there, close = (engine.restore(observed, BitFlip(p)).means[0] for p in (limit, near))
    torch.testing.assert_close(close, there, rtol=0, atol=1e-3)
    # At certainty the answer is the picture, or its inverse; of no evidence all pictures have one answer.
    wanted = there[:1].expand(3, -1) if limit == 0.5 else (observed if limit == 0 else 1 - observed)
    torch.testing.assert_close(there, wanted, rtol=0, atol=1e-3)
