"""Priors on disk: describe, read, assemble and save them.

A prior is a folder named after it, with `weights.safetensors`, `solver.onnx` and `card.md`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restore.errors import REASON, ModelError, OutputError, RestoreError, reason, shown
from restore.files import check_regular, make_folder, remove_abandoned, write_atomically
from restore.registry import UNITS
from restore.zoo import limits
from restore.zoo.card import with_facts, without_facts
from restore.zoo.description import Description

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from restore.priors import RBM, ConditionalRBM, FullyVisible, GaussianMixture, LayeredPrior
    from restore.units import Units

WEIGHTS = "weights.safetensors"
GRAPH = "solver.onnx"
CARD = "card.md"

# The types in which tensors may be stored, in safetensors' words: those known to both numpy and torch.
FLOATS = ("F16", "F32", "F64")
BYTES = ("U8",)


@dataclass(frozen=True)
class TrainedPrior:
    """A prior in memory, ready to restore.

    Attributes:
        description: its header.
        machine: the RBM, deep machine, conditional RBM, fully visible machine, or mixture of Gaussians.
        pixel_means: mean of each pixel over the training images, (D,), inside (0, 1).
        modes: some of the prior's own modes, packed (`restore.priors.bits`), (modes, bytes).
        grey_pixels: the pixels as independent units, for grey pixels; None for binary ones, which have pixel_means.
    """

    description: Description
    machine: RBM | ConditionalRBM | FullyVisible | LayeredPrior | GaussianMixture
    pixel_means: Tensor
    modes: Tensor
    grey_pixels: Units | None = None

    @property
    def pointwise(self) -> Units:
        """The prior of independent pixels."""
        import torch

        from restore.units import Bernoulli

        return Bernoulli(torch.logit(self.pixel_means)) if self.grey_pixels is None else self.grey_pixels

    def of_size(self, shape: tuple[int, int]) -> TrainedPrior:
        """Return the prior for images (H, W) of another size, without modes, if it takes any size."""
        machine = self.description.kind.of_size(self.machine, shape)
        means = self.pixel_means[:1].expand(shape[0] * shape[1])
        return TrainedPrior(self.description.of_size(shape), machine, means, self.modes[:0])


def describe(folder: Path) -> Description:
    """Read a prior's description from the header alone.

    Raises:
        ModelError: if it is only a graph, no prior of ours, damaged, or holds other tensors than its header promises.

    >>> from restore.zoo import find
    >>> header = describe(find("tap-mnist"))
    >>> header.image_shape, header.grey, header.inference.solver
    ((28, 28), False, 'tap')
    """
    with _opened(folder) as (description, _):
        return description


def card_of(folder: Path) -> str:
    """The card of a prior, without the facts at its head; empty if it has none.

    Raises:
        ModelError: if it is a link or no file, or cannot be read.

    >>> from restore.zoo import find
    >>> card_of(find("tap-mnist")).splitlines()[0]
    '# tap-mnist'
    """
    path = folder / CARD
    try:
        check_regular(path, limits.CARD_BYTES)
        return without_facts(path.read_text("utf-8", errors="backslashreplace"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as fault:
        raise ModelError(f"cannot be read ({reason(fault)}); replace or remove it", path) from fault


@contextlib.contextmanager
def _opened(folder: Path, framework: str = "numpy") -> Iterator[tuple[Description, Any]]:
    """Open the weights file of a prior, with tensors of "numpy" or "pt"; raises ModelError as `describe` does."""
    from safetensors import SafetensorError, safe_open

    if folder.is_file():
        raise ModelError("is a graph for onnxruntime alone; name the prior it was made from", folder)
    path = folder / WEIGHTS
    try:
        check_regular(path, limits.FILE)
        with safe_open(path, framework=framework) as opened:
            description = Description.from_header(opened.metadata(), path)
            slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
            pixels = description.pixels
            units = _pointwise(description).values()
            shapes = description.shapes | dict.fromkeys(("pixel_means", *units), (pixels,))
            shapes["modes"] = (description.inference.modes, (pixels + 7) // 8)
            shapes_found = {name: tuple(part.get_shape()) for name, part in slices.items()}
            wrong = {name for name, _ in shapes_found.items() ^ shapes.items()}
            wrong |= {
                name for name, part in slices.items() if part.get_dtype() not in (BYTES if name == "modes" else FLOATS)
            }
            if wrong:
                names = ", ".join(map(shown, sorted(wrong)))[:REASON]
                why = f"tensors missing, extra, or of wrong shape or type: {names}"
                raise ModelError(f"{why}; get the file again", path)
            yield description, opened
    except (OSError, SafetensorError, ValueError, RecursionError) as fault:
        raise ModelError(f"damaged or not a safetensors file ({reason(fault)}); get the file again", path) from fault


def load(folder: Path) -> TrainedPrior:
    """Load a prior; raises ModelError as `read` does.

    >>> from restore.zoo import find
    >>> prior = load(find("tap-mnist-100"))
    >>> [layer.size for layer in prior.machine.layers]
    [784, 100]
    """
    return read(folder)[0]


def read(folder: Path) -> tuple[TrainedPrior, dict[str, Tensor]]:
    """Read and check a prior, and the tensors of its weights file as stored.

    Raises:
        ModelError: if the file is damaged, holds NaN or other tensors than its header promises, or a machine that has
            no distribution.
    """
    import torch

    path = folder / WEIGHTS
    with _opened(folder, "pt") as (description, opened):
        stored = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    for name, value in stored.items():
        # A number finite in double precision may be infinite in single precision.
        if not bool(torch.isfinite(value.float()).all()):
            raise ModelError(f"{name} holds NaN or infinite values; get the file again or train again", path)
    means = stored["pixel_means"].float()
    if not bool(((means > 0) & (means < 1)).all()):
        raise ModelError("pixel_means holds values outside (0, 1); get the file again", path)
    try:
        prior = assembled(description, stored)
        description.kind.check_machine(prior.machine)
    except ValueError as fault:
        raise ModelError(f"{fault}; get the file again, or train again at a lower rate", path) from fault
    return prior, stored


def _pointwise(description: Description) -> dict[str, str]:
    """The tensors of grey pixels as independent units, by parameter. For binary pixels they follow from the means."""
    return {name: f"pointwise.{name}" for name in UNITS[description.visible].parameters} if description.grey else {}


def assembled(description: Description, stored: Mapping[str, Tensor]) -> TrainedPrior:
    """Make a prior from the tensors of a weights file, in single precision."""
    from restore.units.layers import layer_of

    values = {name: value.float() for name, value in stored.items() if name != "modes"}
    machine = description.kind.machine(description, description.image_shape, values)
    parameters = {name: values[stored_as] for name, stored_as in _pointwise(description).items()}
    pixels = layer_of(description.visible, parameters) if parameters else None
    return TrainedPrior(description, machine, values["pixel_means"], stored["modes"], pixels)


def light_ground(pixel_means: np.ndarray) -> bool:
    """True if images whose pixels have these means, in (0, 1), are dark on light.

    >>> import numpy as np
    >>> light_ground(np.array([0.9, 0.9, 0.4]))
    True
    """
    import numpy as np

    return bool(np.log(pixel_means / (1 - pixel_means)).sum() > 0)


def save(folder: Path, prior: TrainedPrior, card: str, error: type[RestoreError] = OutputError) -> None:
    """Write a prior to a folder, which is made if missing; weights that float16 holds exactly take half the space.

    Raises:
        error: if the folder or its files cannot be written.

    >>> from tempfile import TemporaryDirectory
    >>> from restore.zoo import find
    >>> with TemporaryDirectory() as folder:
    ...     save(Path(folder), load(find("tap-mnist-100")), "# A copy")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['card.md', 'weights.safetensors']
    """
    from safetensors.torch import save as to_bytes

    tensors = {name: _compact(value.cpu()) for name, value in prior.machine.parameters.items()}
    tensors |= {"pixel_means": prior.pixel_means.cpu().contiguous(), "modes": prior.modes.cpu().contiguous()}
    if prior.grey_pixels is not None:
        tensors |= {f"pointwise.{name}": value.cpu() for name, value in prior.grey_pixels.parameters.items()}
    make_folder(folder, "choose another place", error)
    remove_abandoned(folder)
    header = prior.description.to_header()
    # Not written by safetensors, whose error on a full disk is no OSError.
    write_atomically(folder / WEIGHTS, in_order(to_bytes(tensors, header)), error)
    with contextlib.suppress(FileNotFoundError):
        # The graph of the previous prior. It is removed only now, so that a full disk leaves everything as it was.
        (folder / GRAPH).unlink()
    write_atomically(folder / CARD, with_facts(card, prior.description).encode(), error)


def in_order(content: bytes) -> bytes:
    """Sort the header of a safetensors file: safetensors writes metadata in random order."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:start]), sort_keys=True, separators=(",", ":")).encode()
    # Tensors must begin at a multiple of 8 bytes.
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[start:]


def _compact(values: Tensor) -> Tensor:
    """Convert a matrix to float16 if that is exact."""
    half = values.half()
    fits = values.dim() == 2 and bool((half.float() == values).all())
    return (half if fits else values).contiguous()
