"""Whether the graphs of priors restore as torch does, on images damaged in several ways.

    python training/parity.py tap-mnist --data mnist

Fails where they do not agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from restore import zoo
from restore.channels import parse_task
from restore.channels.damage import Damage
from restore.data import load
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.open import open_engine
from restore.status import Status
from restore.zoo.description import Description

# By how much probabilities of two engines may differ. In black and white, no pixel may.
TOLERANCE = 1e-4

# By how much grey values may differ: an eighth of a level of 8 bits. Strong couplings take thousands of iterations,
# over which rounding adds up.
GREY_TOLERANCE = 5e-4

# Residuals of one computation differ by less in two engines.
SAME_RESIDUAL = 1e-5

# The damages that unconditional priors are tried on, and what they are told about each, besides the mask of a patch.
# Conditional priors are tried on the damage they have learnt to undo.
DAMAGE = {
    "flip:0.1": Damage(0.1),
    "flip:0.2": Damage(0.2),
    "patch:8": Damage(),
    "flip:0.1+patch:8": Damage(0.1),
}
GREY_DAMAGE = {
    "noise:0.1": Damage(sigma=0.1),
    "noise:0.3": Damage(sigma=0.3),
    "salt:0.2": Damage(0.2),
    "patch:8": Damage(),
    "noise:0.1+salt:0.1+patch:8": Damage(0.1, 0.1),
}


@dataclass(frozen=True)
class Parity:
    """How far an engine lies from the reference on some images.

    What rounding does is below `TOLERANCE` while two iterations go side by side. Where the residual of a start came so
    close to the tolerance of the solver that one engine took one iteration more, it is of the order of that tolerance;
    where a start of an image does not converge it has no bound. Such images are counted apart.

    Attributes:
        task: how the images were damaged.
        images: how many.
        difference: largest difference of a probability of white, or a grey value, between images of one course in both
            engines.
        pixels: how many of their pixels are black for one engine and white for the other; 0 for grey ones.
        parted: images that converged in the reference, but not after the same steps in both.
        parted_difference: largest difference between those.
        unsettled: images that converged in neither engine, though the prior is meant to.
        tol: the tolerance of the solver.
        room: by how much answers of one course may differ.
    """

    task: str
    images: int
    difference: float
    pixels: int
    parted: int
    parted_difference: float
    unsettled: int
    tol: float
    room: float = TOLERANCE

    @property
    def agrees(self) -> bool:
        """Whether a quarter of the images can be compared and agree, and at most a tenth of all went another way."""
        compared = self.images - self.parted - self.unsettled
        alike = self.difference <= self.room and self.pixels == 0 and 4 * compared >= self.images
        # Written so that NaN fails too.
        return alike and 10 * self.parted <= max(10, self.images) and self.parted_difference <= 10 * self.tol


def parities(engine: PictureEngine, reference: PictureEngine, clean: np.ndarray, seed: int = 0) -> Iterator[Parity]:
    """Restore damaged images with both engines, one kind of damage after the other.

    Args:
        engine: what is tried.
        reference: what it is held to, with the same prior.
        clean: images to damage, (N, H, W), in [0, 1].
        seed: of the damage.
    """
    for task, observed, damage in damages(clean, reference.header, seed):
        found, expected = (each.solve(observed, damage) for each in (engine, reference))
        yield compared(found, expected, reference.header, task)


def damage_of(header: Description) -> Mapping[str, Damage]:
    """What a prior that is not conditional is tried on; mixtures of Gaussians know no salt or pepper."""
    known = GREY_DAMAGE if header.grey else DAMAGE
    return {text: told for text, told in known.items() if told.p is None} if header.kind.photographs else known


def damages(clean: np.ndarray, header: Description, seed: int = 0) -> Iterator[tuple[str, np.ndarray, Damage]]:
    """Images (N, H, W), as the prior knows them, after each damage that a prior is tried on; with its name."""
    tried = {header.task: Damage()} if header.task else damage_of(header)
    for text, told in tried.items():
        observed, hidden = _damaged(clean, text, np.random.default_rng(seed))
        yield text, header.as_known(observed), told if header.task else replace(told, hidden=hidden)


def _damaged(clean: np.ndarray, text: str, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
    """Images after all tasks of a text, one task after the other; and the pixels that are hidden."""
    hidden = None
    for task in map(parse_task, text.split("+")):
        damaged = [task.damage_picture(image, generator) for image in clean]
        clean = np.stack([image for image, _ in damaged])
        masks = [mask for _, mask in damaged if mask is not None]
        hidden = np.stack(masks) if masks else hidden
    return clean, hidden


def compared(found: Posterior, expected: Posterior, header: Description, task: str) -> Parity:
    """What two engines with a prior found for the same damaged images."""
    converged = (expected.status == Status.CONVERGED) | header.stops_as_learnt
    unsettled = ~converged & (found.status == expected.status)
    same = (found.status == expected.status) & (found.iterations == expected.iterations)
    # Not a number is the same as nothing, and a diverged image never the same as another.
    same &= np.abs(found.residual - expected.residual) <= SAME_RESIDUAL
    apart = np.abs(found.means - expected.means).max((1, 2))
    if header.grey:
        # There is no border between black and white to cross: what converged to the same is the same.
        same |= (found.status == expected.status) & (apart <= GREY_TOLERANCE)
    same &= converged
    parted = ~same & ~unsettled
    turned = ((found.means > 0.5) != (expected.means > 0.5)).sum((1, 2)) * (not header.grey)
    return Parity(
        task,
        len(apart),
        float(apart[same].max(initial=0)),
        int(turned[same].sum()),
        int(parted.sum()),
        float(apart[parted].max(initial=0)),
        int(unsettled.sum()),
        header.inference.tol,
        GREY_TOLERANCE if header.grey else TOLERANCE,
    )


def main(
    models: Annotated[list[str] | None, typer.Argument(help="Priors by name or folder [all with a graph].")] = None,
    data: Annotated[str | None, typer.Option(help="Images to restore [the test images of each prior].")] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many of them.")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the damage.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
) -> None:
    """Restore images with onnxruntime and with torch; fails where they do not agree."""
    apart = 0
    for name in models or [folder.name for folder in zoo.folders() if (folder / zoo.GRAPH).is_file()]:
        graph, torch = open_engine(name, "onnx"), open_engine(name, "torch", "cpu")
        images = load(data or torch.header.data, split="test", root=data_root).images[:n] / 255
        # Of images larger than its windows a prior is shown the middle.
        (top, height), (left, width) = (
            (max(0, have - want) // 2, want)
            for have, want in zip(images.shape[1:], torch.header.image_shape, strict=True)
        )
        clean = images[:, top : top + height, left : left + width]
        for found in parities(graph, torch, clean, seed):
            apart += not found.agrees
            print(
                f"{name:28} {found.task:16} {found.images:5} images   largest difference {found.difference:.1e}   "
                f"pixels {found.pixels}   parted {found.parted} ({found.parted_difference:.1e})   "
                f"unsettled {found.unsettled}   {'agree' if found.agrees else 'DIFFER'}",
                flush=True,
            )
    if apart:
        raise SystemExit(f"{apart} of the comparisons differ by more than {TOLERANCE} or in a pixel; export them again")


if __name__ == "__main__":
    typer.run(main)
