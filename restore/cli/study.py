"""`restore study`: the experiments behind the published figures, one command each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from restore.cli.study_adaptive import study_adaptive
from restore.cli.study_bslm import study_bslm
from restore.cli.study_crbm import study_crbm
from restore.cli.study_dcp import study_dcp
from restore.cli.study_denoising import study_denoising
from restore.cli.study_dynamics import study_dynamics
from restore.cli.study_grey import study_grey
from restore.cli.study_growth import study_growth
from restore.cli.study_likelihoods import study_likelihoods
from restore.cli.study_report import Asked
from restore.cli.study_scores import study_scores

EXAMPLE = "Example:  restore study denoising --data-root path/to/data -o training/"

# Test images by default, for priors that are told of the damage.
TOLD = 1000


def study(
    name: Annotated[
        Literal["denoising", "scores", "crbm", "likelihoods", "bslm", "dcp", "growth", "grey", "dynamics", "adaptive"],
        typer.Argument(
            help="denoising: table and figure of MCC over p. scores: the cards of the priors. "
            "crbm: eight methods on six tasks, from the recipes crbm-*.toml in the output folder and below. "
            "likelihoods: three measures of them along a training run, and of priors. "
            "bslm: fully visible machines fitted to samples of known ones. "
            "dcp: learners of RBMs at equal numbers of Gibbs sweeps. "
            "growth: Frank-Wolfe against random starts of all sizes. "
            "grey: priors of grey images against other denoisers and inpainting. "
            "dynamics: likelihood, solutions and features of TAP machines along their training. "
            "adaptive: learning by adaptive TAP against learning by TAP."
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="All but scores: folder for tables and figures.")
    ] = Path("training"),
    models: Annotated[list[str] | None, typer.Option("--model", help="Priors [all published ones].")] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "--n", help="Number of test images [1000; grey: 200; dynamics: 10000; for conditional priors all]."
        ),
    ] = None,
    priors: Annotated[Path, typer.Option(help="crbm: folder of trained priors that are not published.")] = Path(
        "runs/priors"
    ),
    runs: Annotated[Path, typer.Option(help="Folder of the runs, whose logs and priors are read.")] = Path("runs"),
    train_missing: Annotated[
        bool, typer.Option("--train", help="Train what is missing first, one after the other: often many hours.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the damage.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
) -> None:
    """Repeat a study and write its results where they are published."""
    from importlib.util import find_spec

    import torch

    from restore import zoo
    from restore.data import as_pixels, binarise, load
    from restore.engine import Engine
    from restore.errors import OutputError, UsageError

    if n is not None and n < 2:
        raise UsageError(f"--n must be at least 2, not {n}")
    if name != "scores" and not output.is_dir():
        raise OutputError(f"{output}: is no folder; make it or choose another -o")
    if name != "scores" and find_spec("matplotlib") is None:
        raise UsageError("the figure of this study needs matplotlib; pip install matplotlib")
    asked = Asked(output, priors, runs, train_missing, n, seed, data_root, device)
    if name == "bslm":
        study_bslm(output, seed)
        return
    if name == "crbm":
        study_crbm(asked)
        return
    if name == "growth":
        study_growth(asked)
        return
    if name == "adaptive":
        study_adaptive(asked)
        return
    if name == "dcp":
        study_dcp(asked)
        return
    if name == "dynamics":
        study_dynamics(asked)
        return
    published = zoo.published_folder()
    names = models or sorted(folder.name for folder in zoo.folders() if folder.parent == published)
    if name == "likelihoods":
        study_likelihoods(asked, names)
        return
    if name == "grey":
        study_grey(asked, names)
        return
    if name == "scores":
        for model in names:
            engine = Engine.load(model, device)
            about = engine.trained.description
            images = load(about.data, split="test", root=data_root).images
            manner: Literal["grey", "threshold"] = "grey" if about.grey else "threshold"
            truth = torch.from_numpy(as_pixels(images, manner, about.threshold, 0))
            study_scores(zoo.find(model), engine, truth[: n or (len(truth) if about.conditional else TOLD)], n, seed)
        return
    engines = {model: Engine.load(model, device) for model in names}
    engines = {
        model: engine
        for model, engine in engines.items()
        if not engine.description.conditional and engine.description.data == "mnist"
    }
    if not engines:
        raise UsageError("no prior here is of mnist and told of the flips; name others with --model")
    truth = torch.from_numpy(binarise(load("mnist", split="test", root=data_root).images))
    training = torch.from_numpy(binarise(load("mnist", split="train", root=data_root).images))
    study_denoising(output, engines, training, truth[: n or TOLD], seed)
