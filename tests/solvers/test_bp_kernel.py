"""The fused kernel of belief propagation: where it is used, its threads, and machines without a compiler."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from machines import random_rbm
from textbook import kinds, needs_kernel, under_evidence, with_values

from restore.solvers import BeliefPropagation
from restore.solvers.messages import bp_kernel
from restore.status import Status

# --- where it is used ---


@needs_kernel
def test_the_kernel_is_used_where_it_fits_and_only_there(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    run = bp_kernel.run
    monkeypatch.setattr(bp_kernel, "run", lambda *args, **keys: used.append(1) or run(*args, **keys))
    machine = random_rbm(4, 3, dtype=torch.float32)
    cases = [
        (machine, {}, 1),
        (with_values(machine, machine.weights * 0 + 30), {}, 1),
        (with_values(machine, machine.weights * 0 - 30.01), {}, 0),
        (with_values(machine, machine.weights * 0 + 1000), {}, 0),
        (machine.to(torch.float64), {}, 0),
        (machine, {"damping": 0.5}, 0),
    ]
    for case, keys, times in cases:
        used.clear()
        BeliefPropagation(max_iter=3, **keys).solve(case)
        assert len(used) == times


@needs_kernel
@kinds
@pytest.mark.parametrize("shape", [(1, 1), (1, 20), (20, 1), (7, 15), (7, 16), (7, 17), (33, 48)], ids=str)
@pytest.mark.parametrize("images", [1, 3, 9])
def test_threads_share_a_batch_of_any_size(kind: str, shape: tuple[int, int], images: int) -> None:
    machine = under_evidence(random_rbm(*shape, scale=0.7), images).to(torch.float32)
    largest = bp_kernel.largest_weight(machine.weights)
    assert largest == float(machine.weights.abs().max())
    rule = bp_kernel.KernelSettings(kind, max_iter=6, tol=0.0)
    fields = [layer.parameters["bias"] for layer in machine.layers]
    one, *others = (
        bp_kernel.run(machine.weights, *fields, rule, largest=largest, threads=threads, pairs=True)
        for threads in (1, 2, 4, 50)
    )
    for other in others:
        for name in ("visible", "hidden", "iterations", "residual"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name
        assert (one.log_partition is None) == (other.log_partition is None) == (kind != "sum")
        assert one.log_partition is None or torch.equal(one.log_partition, other.log_partition)
        torch.testing.assert_close(one.pairs, other.pairs, rtol=1e-6, atol=1e-6)
    plain = BeliefPropagation(kind, 6, 0.0)._plain(machine, images, kind == "sum")  # type: ignore[arg-type]
    torch.testing.assert_close(one.visible, plain.means[0], rtol=0, atol=1e-4)
    torch.testing.assert_close(one.hidden, plain.means[1], rtol=0, atol=1e-4)
    if kind == "sum":
        assert one.pairs is not None
        assert plain.pairs is not None
        torch.testing.assert_close(one.pairs / images, plain.pairs, rtol=0, atol=1e-4)
        torch.testing.assert_close(one.log_partition, plain.log_partition, rtol=1e-5, atol=1e-3)


# --- without it ---


@pytest.fixture
def unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A cache without kernels; what is built in it is forgotten afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bp_kernel.library.cache_clear()
    yield tmp_path / "restore" / "kernels"
    bp_kernel.library.cache_clear()


@pytest.mark.thorough
@needs_kernel
def test_a_compiler_that_fails_is_passed_over(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", shutil.which("false") or "/bin/false")
    assert isinstance(bp_kernel.library(), ctypes.CDLL)
    assert [path.suffix for path in unbuilt.iterdir()] == [".so"]


def test_where_no_compiler_works_there_is_no_kernel(
    unbuilt: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cc", "gcc", "clang"):
        # It knows its version but compiles nothing, as one without headers does.
        (folder / name).write_text('#!/bin/sh\n[ "$1" = --version ] && echo 1.0 && exit 0\nexit 1\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    assert bp_kernel.library() is None
    solution = BeliefPropagation().solve(random_rbm(4, 3, dtype=torch.float32))
    assert solution.status.tolist() == [Status.CONVERGED]
    assert list(unbuilt.iterdir()) == []
    monkeypatch.setenv("PATH", str(tmp_path))
    bp_kernel.library.cache_clear()
    assert bp_kernel.library() is None


@pytest.mark.thorough
@needs_kernel
def test_without_a_cache_the_kernel_is_built_for_the_process(
    unbuilt: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unbuilt.parent.mkdir()
    unbuilt.write_text("in the way", encoding="utf-8")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert isinstance(bp_kernel.library(), ctypes.CDLL)
    machine = random_rbm(4, 3, dtype=torch.float32)
    assert BeliefPropagation().solve(machine).status.tolist() == [Status.CONVERGED]
    assert list(temporary.iterdir()) == []


def test_without_any_folder_to_build_in_there_is_no_kernel(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unbuilt.parent.mkdir()
    unbuilt.write_text("in the way", encoding="utf-8")
    monkeypatch.setattr(tempfile, "tempdir", str(unbuilt))
    assert bp_kernel.library() is None


@pytest.fixture
def compiler(tmp_path: Path) -> str:
    """Something that knows its version, and compiles everything to the same text."""
    script = tmp_path / "compiler"
    script.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exit 0\nwhile [ "$1" != -o ]; do shift; done\nprintf built > "$2"\n'
    )
    script.chmod(0o755)
    return str(script)


def test_a_kept_kernel_is_named_after_what_it_was_built_from(compiler: str, tmp_path: Path) -> None:
    cache, source = tmp_path / "kernels", tmp_path / "other.c"
    source.write_text("other")
    first, other = (bp_kernel._built(compiler, [option], cache) for option in ("-O3", "-O2"))
    assert len({path.name[-36:] for path in (first, other, bp_kernel._built(compiler, ["-O3"], cache, source))}) == 3


def test_a_kernel_that_others_could_have_changed_is_built_anew(compiler: str, tmp_path: Path) -> None:
    cache, planted = tmp_path / "kernels", tmp_path / "planted"
    planted.write_text("planted")
    kept = bp_kernel._built(compiler, [], cache)
    assert kept.read_text() == "built" and not kept.stat().st_mode & 0o077
    # Ours is not built again.
    kept.write_text("kept")
    assert bp_kernel._built(compiler, [], cache).read_text() == "kept"
    kept.chmod(0o722)
    assert bp_kernel._built(compiler, [], cache).read_text() == "built"
    kept.unlink()
    kept.symlink_to(planted)
    assert bp_kernel._built(compiler, [], cache).read_text() == "built"
    assert not kept.is_symlink() and planted.read_text() == "planted"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
def test_a_cache_that_others_could_change_is_not_used(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "kernels"
    bp_kernel._built(compiler, [], cache)
    (tmp_path / "link").symlink_to(cache)
    with pytest.raises(OSError):
        bp_kernel._built(compiler, [], tmp_path / "link")
    cache.chmod(0o777)
    with pytest.raises(OSError):
        bp_kernel._built(compiler, [], cache)
    cache.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: cache.stat().st_uid + 1)
    with pytest.raises(OSError):
        bp_kernel._built(compiler, [], cache)
