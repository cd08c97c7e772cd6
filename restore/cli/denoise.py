"""`restore denoise`: undo random bit flips, or Gaussian noise."""

from __future__ import annotations

from restore.cli import options as given

EXAMPLE = "Example:  restore denoise noisy.png --model tap-mnist --p 0.1"


@given.restoring
def denoise(
    images: given.Images,
    p: given.Flips = None,
    sigma: given.Sigma = None,
    *,
    options: given.Options,
    results: given.Results,
) -> None:
    """Remove flipped pixels or Gaussian noise from images, or the damage that a crbm model was trained on."""
    from restore.cli import batch, watch
    from restore.inference.damage import Damage

    work = watch.run if results.watch else batch.run
    work(images, Damage.of(p, sigma), options, results)
