"""Conditional convolutional machines: a grey page sets the fields of a machine over its ink (CRBM-BP, sec. 3.2)."""

from __future__ import annotations

from torch import Tensor

from restore.channels.views import views_of
from restore.couplings.convolution import Convolution
from restore.fields import Fields
from restore.priors.convolutional import ConvolutionalDBM

# The least precision to divide by, so that one of 0 does no harm.
TINY = 1e-6


class ConditionalDBM(ConvolutionalDBM):
    """A convolutional deep machine p(v, h | x) whose biases depend on a grey page x, by kernels over its views.

    As in the conditional RBM, x has weights to pixels and to hidden units: in `shared`, `inputs.0` (1, views, side,
    side) to pixels, and `inputs.L` (features, views, side, side) to the layers that are as fine as the page.

    >>> import torch
    >>> from restore.channels.views import VIEWS
    >>> shared = {"weights.0": torch.zeros(1, 1, 3, 3), "units.0.centre": torch.full((1,), 0.5)}
    >>> shared |= {f"units.{layer}.bias": torch.zeros(1) for layer in range(2)}
    >>> shared |= {f"inputs.{layer}": torch.zeros(1, VIEWS, 3, 3) for layer in range(2)}
    >>> shared["inputs.0"][0, 0, 1, 1] = -1  # darker than the paper: ink, which is 0
    >>> page = torch.full((1, 32 * 32), 0.8)
    >>> page[0, 500:506] = 0.1
    >>> machine = ConditionalDBM.of(shared, (32, 32), [(1, "spin")]).tilt(Fields(page, torch.ones_like(page)))
    >>> bias = machine.layers[0].parameters["bias"][0]
    >>> bool(bias[503] < 0 < bias[100])
    True
    """

    def heard(self, evidence: Fields) -> list[Fields | None]:
        """The fields that a page, given as evidence on the image (batch, D): its grey levels, gives each layer."""
        lowest = self.couplings[0]
        assert isinstance(lowest, Convolution)
        return self.through_inputs(views_of_page(evidence, lowest.image_shape).flatten(1))


def views_of_page(evidence: Fields, image_shape: tuple[int, int]) -> Tensor:
    """The views (batch, VIEWS, H, W) of pages given as evidence on the image (batch, D): their grey levels.

    Hidden pixels have precision 0. Grey levels are given times their precision, so its size does not matter.
    """
    visible = (evidence.quadratic > 0).to(evidence.linear).expand_as(evidence.linear)
    grey = evidence.linear / evidence.quadratic.clamp_min(TINY)
    return views_of(*(values.reshape(-1, 1, *image_shape) for values in (grey, visible)))
