"""`restore denoise`: undo random bit flips, or Gaussian noise."""

from __future__ import annotations

from typing import Any

from restore.cli import options as given

EXAMPLE = "Example:  restore denoise noisy.png --model tap-mnist --p 0.1"


@given.restoring
def denoise(
    images: given.Images,
    *,
    damage: Any,
    options: given.Options,
    results: given.Results,
) -> None:
    """Remove flipped pixels or Gaussian noise from images, or the damage that a crbm model was trained on."""
    from restore.cli import batch

    batch.run(images, damage, options, results)
