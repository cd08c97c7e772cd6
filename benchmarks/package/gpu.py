"""All that a GPU can be asked: is it right, how fast is it, what does it do when memory is short.

    python benchmarks/package/gpu.py [--device cuda] [--output benchmarks/gpu.md] [--quick]

It needs no data and writes one page of Markdown, within four minutes. A part that fails says so on the page, and the
others go on. Where there is no GPU everything runs on the processor, which tries this script and measures nothing.
`--quick` takes the smallest sizes.

What is measured is compared with what is possible in the same run: messages of belief propagation with a copy in memory
(8 bytes a message), an iteration of TAP with its products of matrices alone, images with those of the processor.
"""

from __future__ import annotations

import argparse
import inspect
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

import restore
from restore.channels import BitFlip
from restore.evaluation.card import table
from restore.fields import Fields
from restore.inference import torch_engine
from restore.inference.torch_engine import Engine
from restore.learning.course import CleanImages, course_of
from restore.learning.recipe.recipe import parse, read_recipe
from restore.learning.run.card import machine_facts
from restore.learning.run.folder import Stopped
from restore.learning.run.session import Progress, Session
from restore.learning.steps import fit
from restore.priors import RBM
from restore.priors.bits import unpack
from restore.solvers import TAP, BeliefPropagation
from restore.solvers.messages import bp_kernel
from restore.zoo import GRAPH, find

# No part begins when so many seconds are used.
LIMIT = 200.0

# Weights with which belief propagation settles in a few iterations, of either kind.
WEAK = 0.03

# A tolerance at which TAP's means no longer depend on where it stops.
FINE = 1e-5

# An iteration is timed over so many of them.
ITERATIONS = 20

MESSAGE_BYTES = 8
SEED = 0

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Asked:
    """Where to compute, and whether at the smallest sizes."""

    device: torch.device
    quick: bool

    def seconds(self, work: Callable[[], Any], repeats: int = 3, warm_up: int = 1) -> float:
        """The least seconds of a piece of work, which the device has then done, after others to warm up."""
        found = []
        for _ in range(warm_up + repeats):
            start = time.perf_counter()
            work()
            self.wait()
            found.append(time.perf_counter() - start)
        return min(found[warm_up:])

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def pick(self, usual: Any, least: Any) -> Any:
        return least if self.quick else usual


def machine_of(visible: int, hidden: int, device: torch.device, scale: float = 0.1) -> RBM:
    draw = torch.Generator().manual_seed(SEED)
    weights = torch.randn(visible, hidden, generator=draw) * scale
    return RBM.binary(weights, torch.zeros(visible), torch.randn(hidden, generator=draw)).to(device)


def evidence_of(images: int, pixels: int, device: torch.device) -> Fields:
    """Log-odds of ±2.2, those of ten per cent of flips."""
    draw = torch.Generator().manual_seed(SEED)
    return Fields((2.2 * torch.randn(images, pixels, generator=draw).sign()).to(device))


def digits_of(engine: Engine, count: int) -> Tensor:
    """The prior's own modes in turns: images like those it has learnt from."""
    modes = unpack(engine.trained.modes.cpu(), engine.header.pixels).float()
    return modes[torch.arange(count) % len(modes)]


# --- parts ---


def correctness(asked: Asked) -> str:
    """The device against the processor: beliefs, TAP, and what TF32 changes.

    Couplings are weak enough for max-product to settle. Where it does not, with weights of .1, single and double
    precision on one processor differ by .09 after eight iterations. Log Z is compared with its size.
    """
    rows = []
    hidden, images = asked.pick(256, 16), asked.pick(64, 3)
    for kind in ("sum", "max", "mixed"):
        solver, found = BeliefPropagation(kind, max_iter=8, tol=0), []  # type: ignore[arg-type]
        for device in (CPU, asked.device):
            machine = machine_of(784, hidden, device, WEAK).tilt(evidence_of(images, 784, device))
            found.append(solver.solve(machine, pairs=kind == "sum"))
        rows.append([f"{kind}-product", apart(found[0].means[0], found[1].means[0])])
        if kind == "sum":
            size = found[0].log_partition.abs().max()
            rows += [["log Z", apart(*(each.log_partition.cpu() / size for each in found))]]
            rows += [["pairs", apart(found[0].pairs, found[1].pairs)]]
    engines = [Engine.load("tap-mnist", str(device)) for device in (CPU, asked.device)]
    clean = digits_of(engines[0], asked.pick(1000, 2))
    seen = BitFlip(0.1).corrupt(clean, torch.Generator().manual_seed(SEED))
    # A solver stops once nothing moves by more than its tolerance, and may stop an iteration earlier elsewhere.
    for tol in (FINE, engines[0].header.inference.tol):
        usual = [to(engine, tol).restore(seen, BitFlip(0.1)).means[0].cpu() for engine in engines]
        rows.append([f"TAP, tap-mnist, tolerance {tol:g}", apart(*usual)])
    with tf32():
        quick = engines[1].restore(seen, BitFlip(0.1)).means[0].cpu()
    changed = float(((quick > 0.5) != (usual[1] > 0.5)).double().mean())
    text = table(["what", "largest difference from the processor"], rows)
    return f"{text}\n\nWith TF32 {changed:.2e} of the pixels change their colour. It is off."


def to(engine: Engine, tol: float) -> Engine:
    """The engine with another tolerance."""
    header = engine.header
    header = replace(header, inference=replace(header.inference, tol=tol))
    return replace(engine, trained=replace(engine.trained, description=header))


@contextmanager
def tf32() -> Iterator[None]:
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")


def apart(one: Tensor | None, other: Tensor | None) -> str:
    assert one is not None and other is not None
    return f"{float((one.cpu().double() - other.cpu().double()).abs().max()):.1e}"


def belief_propagation(asked: Asked) -> str:
    """Messages a second against a copy in memory."""
    size = asked.pick(2**28, 2**20)
    source, target = (torch.ones(size, device=asked.device) for _ in range(2))
    bandwidth = 8 * size / asked.seconds(lambda: target.copy_(source))
    usual = [(784, 256, 64), (784, 256, 512), (784, 256, 4096), (1000, 500, 64), (10_000, 2_000, 1)]
    rows = []
    for visible, hidden, images in asked.pick(usual, [(36, 16, 4)]):
        machine = machine_of(visible, hidden, asked.device).tilt(evidence_of(images, visible, asked.device))

        # The difference of two numbers of iterations has no start and no end.
        once, twice = (
            asked.seconds(lambda: BeliefPropagation(max_iter=count, tol=0).solve(machine))  # noqa: B023
            for count in (ITERATIONS, 2 * ITERATIONS)
        )
        rate = 2 * visible * hidden * images * ITERATIONS / max(twice - once, 1e-9)
        numbers = f"{1000 * once:.2f}", f"{rate / 1e9:.2f}", f"{rate * MESSAGE_BYTES / bandwidth:.2f}"
        rows.append([f"{visible} x {hidden}, batch {images}", *numbers])
    kernel = "Triton's kernel" if asked.device.type == "cuda" else "the C kernel"
    usable = kernel if bp_kernel.usable(asked.device) else "no kernel"
    head = ["machine", f"ms of {ITERATIONS} iterations", "G messages/s", "of the copy's"]
    return f"With {usable}; a copy moves {bandwidth / 1e9:.0f} GB/s.\n\n{table(head, rows)}"


def tap(asked: Asked) -> str:
    """An iteration of TAP against its products of matrices alone, in full precision and with TF32."""
    rows = []
    images, hidden = asked.pick(32768, 64), asked.pick(256, 16)
    machine = machine_of(784, hidden, asked.device).tilt(evidence_of(images, 784, asked.device))
    solver = TAP(damping=0.5)
    with torch.inference_mode():
        state = solver.init(machine, torch.full((images, 784), 0.5, device=asked.device))
        weights, squared = machine.weights, machine.squared_couplings[0].weights

        def products() -> None:
            for below, above, matrix in ((state[0], state[1], weights), (state[2], state[3], squared)):
                torch.mm(below, matrix)
                torch.mm(above, matrix.T)

        flops = 8 * images * 784 * hidden
        for name, setting in (("float32", nullcontext()), ("TF32", tf32())):
            with setting:
                step, bare = asked.seconds(lambda: solver.step(machine, state)), asked.seconds(products)
            numbers = f"{1000 * step:.3f}", f"{1000 * bare:.3f}", f"{flops / step / 1e12:.2f}", f"{bare / step:.2f}"
            rows.append([name, *numbers])
    head = ["precision", "ms an iteration", "ms of products", "TFLOP/s", "products' share"]
    return f"784 x {hidden}, {images} rows.\n\n{table(head, rows)}"


def digits(asked: Asked) -> str:
    """Digits a second of the device and the processor, and from how many on the device is worth its start.

    Below, what the device solved for them: images and starts, the most iterations of one, seconds.
    """
    rows, solved = [], list[list[str]]()
    for name, channel in (("tap-mnist", BitFlip(0.1)), ("crbm-bp-mnist-flip10", None)):
        rates, starts = [], []
        for device, count in ((asked.device, asked.pick(50_000, 2)), (CPU, asked.pick(200, 1))):
            start = time.perf_counter()
            engine = Engine.load(name, str(device))
            clean = digits_of(Engine.load("tap-mnist", "cpu"), count)
            seen = BitFlip(0.1).corrupt(clean, torch.Generator().manual_seed(SEED))
            engine.restore(seen[:1], channel)
            starts.append(time.perf_counter() - start)
            rates.append(count / asked.seconds(lambda: engine.restore(seen, channel), 1))  # noqa: B023
            if device == asked.device:
                solved += [[name, *each] for each in calls(asked, lambda: engine.restore(seen, channel))]  # noqa: B023
        gain = 1 / rates[1] - 1 / rates[0]
        even = f"{max(0.0, starts[0] - starts[1]) / gain:.0f}" if gain > 0 else "never"
        rows.append([name, *(f"{rate:.0f}" for rate in rates), *(f"{start:.2f}" for start in starts), even])
    head = ["prior", "images/s", "on the processor", "s to start", "of the processor", "worth it from"]
    parts = table(["prior", "rows", "iterations", "s"], solved)
    return f"{table(head, rows)}\n\n{parts}"


def calls(asked: Asked, work: Callable[[], Any]) -> list[list[str]]:
    """What a solver is called for: rows, the most iterations, seconds."""
    made: list[list[str]] = []

    def timed(solve: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            found = solve(*arguments, **options)
            asked.wait()
            spent = f"{time.perf_counter() - start:.3f}"
            made.append([str(len(found.iterations)), str(int(found.iterations.max())), spent])
            return found

        return called

    with (
        patch.object(TAP, "solve", timed(TAP.solve)),
        patch.object(BeliefPropagation, "solve", timed(BeliefPropagation.solve)),
    ):
        work()
    return made


def pages(asked: Asked) -> str:
    """A page of A4 at 200 dots per inch, full of digits, with a tenth of its pixels flipped.

    `conv-text` is what `auto` takes, in onnxruntime on the processor. Seconds of the whole; of the solver alone; and
    of everything else, which the processor does.
    """
    height, width = asked.pick((2339, 1654), (64, 64))
    writer = Engine.load("tap-mnist", "cpu")
    side = writer.header.image_shape[0]
    down, across = -(-height // side), -(-width // side)
    tiles = digits_of(writer, down * across).reshape(down, across, side, side).numpy()
    page = tiles.transpose(0, 2, 1, 3).reshape(down * side, across * side)[:height, :width]
    seen = np.where(np.random.default_rng(SEED).random(page.shape) < 0.1, 1 - page, page)
    rows = []
    for model, device, engine in (
        ("conv-text", str(asked.device), "torch"),
        ("conv-text", "cpu", "auto"),
    ):
        restorer = restore.load(model, device=device, engine=engine)  # type: ignore[arg-type]
        restorer.denoise(seen[:1200, :1200], p=0.1)  # to warm up
        with solving_in(asked) as solving:
            start = time.perf_counter()
            clean = restorer.denoise(seen, p=0.1)
            whole = time.perf_counter() - start
        wrong = (np.asarray(clean) > 0.5) != (page > 0.5)
        split = [f"{part:.3f}" for part in (sum(solving), whole - sum(solving))]
        split = split if engine == "torch" else ["", ""]
        rows.append([model, device, f"{whole:.3f}", *split, f"{100 * float(wrong.mean()):.3f}"])
    head = ["prior", "device", "s", "solving", "the rest", "wrong pixels, %"]
    return f"{width} x {height} pixels.\n\n{table(head, rows)}"


@contextmanager
def solving_in(asked: Asked) -> Iterator[list[float]]:
    """The seconds of every solve of the torch engine, which waits for the device."""
    spent: list[float] = []
    solve = torch_engine.solve

    def timed(*arguments: Any) -> Any:
        start = time.perf_counter()
        solution = solve(*arguments)
        asked.wait()
        spent.append(time.perf_counter() - start)
        return solution

    with patch.object(torch_engine, "solve", timed):
        yield spent


def recipe_of(method: dict[str, Any], hidden: int, epochs: int) -> Any:
    return parse(
        {
            "name": "gpu",
            "data": {"source": "modes"},
            "prior": {"hidden": hidden, "weight_scale": 0.01},
            "learner": method,
            "optimizer": {"rate": 0.01},
            "training": {"epochs": epochs, "batch": 100},
            "inference": {"modes": 0, "starts": 1},
        }
    )


METHODS: dict[str, dict[str, Any]] = {
    "PCD": {"method": "contrastive", "starts": "persistent"},
    "TAP": {"method": "tap", "starts": "redrawn"},
}


def images_for(asked: Asked, device: torch.device) -> CleanImages:
    count = asked.pick(10_000, 40)
    return CleanImages(digits_of(Engine.load("tap-mnist", "cpu"), count).to(device))


def training(asked: Asked) -> str:
    """Seconds an epoch."""
    rows = []
    for name, method in METHODS.items():
        row = [name]
        for device in (asked.device, CPU):
            recipe, course = recipe_of(method, asked.pick(256, 4), 1), images_for(asked, device)
            with tempfile.TemporaryDirectory() as folder:
                fit(recipe, images_for(replace(asked, quick=True), device), Session(Path(folder)))  # to warm up
            with tempfile.TemporaryDirectory() as folder:
                start = time.perf_counter()
                fit(recipe, course, Session(Path(folder)))
                asked.wait()
                row.append(f"{time.perf_counter() - start:.2f}")
        rows.append(row)
    return table(["method", "s an epoch", "on the processor"], rows)


def long_training(asked: Asked) -> str:
    """How long the training of `conv-text` takes, from some of its steps on images of strokes."""
    recipe = read_recipe(Path(__file__).parents[2] / "training/recipes/conv-text.toml")
    side, batch = recipe.data.gathering.shape[0], recipe.training.batch
    images = int(recipe.data.gathering.patches * (1 - recipe.data.gathering.held_out))
    steps = recipe.training.epochs * (images // batch)
    rows = []
    for size in asked.pick((batch, 8 * batch, 64 * batch), (2,)):
        training = replace(recipe.training, epochs=1, batch=size, watch="", minutes=0)
        tried = replace(recipe, training=training)
        spent = []
        for count in asked.pick((20, 220), (1, 2)):
            course = course_of(tried, strokes(count * size, side).to(asked.device), (side, side))
            with tempfile.TemporaryDirectory() as folder:
                start = time.perf_counter()
                fit(tried, course, Session(Path(folder)))
                asked.wait()
                spent.append((count, time.perf_counter() - start))
        (few, short), (many, long) = spent
        step = max(long - short, 1e-9) / (many - few)
        minutes = steps * batch / size * step / 60
        rows.append([str(size), f"{1000 * step:.2f}", f"{size / step:.0f}", f"{minutes:.1f}"])
    head = ["batch", "ms a step", "images/s", f"minutes of {recipe.training.epochs} epochs"]
    return f"{images} images of {side} x {side}.\n\n{table(head, rows)}"


def strokes(count: int, side: int) -> Tensor:
    """Images (count, D) of a few horizontal and vertical strokes."""
    random = np.random.default_rng(SEED)
    images = np.zeros((count, side, side), np.float32)
    first, length = random.integers(0, side, (2, count, 8)), random.integers(4, side // 2, (count, 8))
    for image, across, along, long in zip(images, *first, length, strict=True):
        for index in range(len(long)):
            turned = image if index % 2 else image.T
            turned[across[index] : across[index] + 3, along[index] : along[index] + long[index]] = 1
    return torch.from_numpy(images).flatten(1)


def resume(asked: Asked) -> str:
    """A run that is stopped after an epoch and goes on ends with the bits of one that was left alone."""
    course = images_for(asked, asked.device)
    rows = []

    def stop(passed: Progress) -> None:
        if passed.done == 1:
            os.kill(os.getpid(), signal.SIGINT)

    for name, method in METHODS.items():
        recipe = recipe_of(method, asked.pick(64, 4), 2)
        with tempfile.TemporaryDirectory() as folder:
            whole = fit(recipe, course, Session(Path(folder) / "whole")).machine
            session = Session(Path(folder) / "stopped")
            with suppress(Stopped):
                fit(recipe, course, replace(session, watch=stop))
            again = fit(recipe, course, replace(session, resume=True)).machine
        same = all(torch.equal(value, again.parameters[key]) for key, value in whole.parameters.items())
        rows.append([name, "the same bits" if same else "OTHER BITS"])
    return table(["method", "resumed"], rows)


def memory(asked: Asked) -> str:
    """Restoring while nearly all memory is taken."""
    if asked.device.type != "cuda":
        return "Left out: a processor's memory is not taken away from others."
    engine = Engine.load("tap-mnist", str(asked.device))
    seen = digits_of(engine, asked.pick(20_000, 50))
    wanted = engine.restore(seen, BitFlip(0.1)).means[0].cpu()
    torch.cuda.empty_cache()
    kept = asked.pick(256, 128) * 2**20
    taken = torch.empty(torch.cuda.mem_get_info(asked.device)[0] - kept, dtype=torch.uint8, device=asked.device)
    try:
        found = engine.restore(seen, BitFlip(0.1)).means[0].cpu()
    finally:
        # Given back to the device, of which NCCL and onnxruntime take memory by themselves.
        del taken
        torch.cuda.empty_cache()
    difference = apart(found, wanted)
    return f"With {kept / 2**20:.0f} MiB left {len(seen)} digits come out {difference} apart from those with all of it."


def together(asked: Asked) -> str:
    """torch.distributed with one process."""
    import torch.distributed as group

    backend, own = "gloo", None
    if asked.device.type == "cuda":
        backend, own = "nccl", torch.device("cuda", asked.device.index or 0)
        torch.cuda.set_device(own)
        os.environ.setdefault("NCCL_DEBUG", "WARN")
    with tempfile.NamedTemporaryFile() as meeting:
        place = f"file://{meeting.name}x"
        group.init_process_group(backend, init_method=place, rank=0, world_size=1, device_id=own)
        try:
            numbers = torch.arange(1000.0, device=asked.device)
            spent = asked.seconds(lambda: group.all_reduce(numbers))
            assert torch.equal(numbers.cpu(), torch.arange(1000.0))
        finally:
            group.destroy_process_group()
    return f"{backend}: a sum over 1,000 numbers takes {1e6 * spent:.0f} µs."


def onnxruntime(asked: Asked) -> str:
    """The prior's graph with onnxruntime's provider for CUDA."""
    import onnxruntime as runtime

    provider, there = "CUDAExecutionProvider", runtime.get_available_providers()
    if provider not in there:
        return f"This onnxruntime {runtime.__version__} has {', '.join(there)}: no {provider}."
    path = find("tap-mnist") / GRAPH
    sessions = [runtime.InferenceSession(path, providers=chosen) for chosen in ([provider], ["CPUExecutionProvider"])]
    kinds = {"tensor(float)": np.float32, "tensor(bool)": np.bool_, "tensor(int64)": np.int64, "tensor(double)": float}
    rows = []
    for session in sessions:
        feeds = {}
        for each in session.get_inputs():
            shape = [side if isinstance(side, int) else 64 for side in each.shape]
            feeds[each.name] = np.zeros(shape, kinds[each.type])
        rows.append([session.get_providers()[0], f"{asked.seconds(lambda: session.run(None, feeds)):.3f}"])  # noqa: B023
    return table(["provider", "s for 64 images without damage"], rows)


PARTS: dict[str, Callable[[Asked], str]] = {
    "Is it right": correctness,
    "Belief propagation": belief_propagation,
    "TAP": tap,
    "Digits": digits,
    "A page": pages,
    "Several processes": together,
    "Training": training,
    "A long training": long_training,
    "Stopped and resumed": resume,
    "Short of memory": memory,
    "onnxruntime": onnxruntime,
}


def page(asked: Asked, parts: dict[str, Callable[[Asked], str]]) -> tuple[str, list[str]]:
    """The page, and the parts that failed."""
    began = time.perf_counter()
    where = torch.cuda.get_device_name(asked.device) if asked.device.type == "cuda" else "no GPU: nothing here counts"
    lines = [f"# Measured on {asked.device}", "", f"{where}; {machine_facts()}."]
    failed = []
    for name, part in parts.items():
        start = time.perf_counter()
        if start - began > LIMIT:
            text = "Left out: there was no time."
        else:
            try:
                text = part(asked)
            except Exception:
                failed.append(name)
                text = f"FAILED:\n\n```\n{traceback.format_exc(limit=-3)}```"
                print(text, flush=True)
        lines += ["", f"## {name}", "", inspect.cleandoc(part.__doc__ or ""), "", text]
        print(f"{name}: {time.perf_counter() - start:.1f} s{', FAILED' if name in failed else ''}", flush=True)
    return "\n".join(lines) + "\n", failed


def main() -> None:
    options = argparse.ArgumentParser(description="All that a GPU can be asked, on one page.")
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="[%(default)s]")
    options.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "gpu.md", help="[%(default)s]")
    options.add_argument("--quick", action="store_true", help="the smallest sizes")
    chosen = options.parse_args()
    text, failed = page(Asked(torch.device(chosen.device), chosen.quick), PARTS)
    chosen.output.write_text(text)
    print(f"{chosen.output} is written")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
