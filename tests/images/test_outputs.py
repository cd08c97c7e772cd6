"""Which files are read and where results go: every row of the table of bad outputs."""

from __future__ import annotations

import os
from pathlib import Path

import bad_images
import pytest
from bad_images import images
from hypothesis import given
from hypothesis import strategies as st

from restore.buckets import path_of
from restore.errors import InputError, OutputError, UsageError, shown
from restore.images import IMAGE_SUFFIXES
from restore.images.outputs import expand, in_part, named, names_below, paired, refuse_clashes, to_write


def plan(inputs, output, *, overwrite, skip_existing):
    """The pairs of inputs and outputs that are left, as a command finds them."""
    pairs = paired(inputs, output)
    targets = [target for _, target in pairs]
    refuse_clashes(inputs, targets)
    left = to_write(targets, output, overwrite=overwrite, skip_existing=skip_existing)
    return [pair for pair in pairs if pair[1] in left]


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


# Names of inputs, what -o is given below their folder, and the error. In the folder are two links to x.png, an empty
# folder of two names, and a folder that cannot be written to.
OUTPUTS = {
    "two-names": ("x.dat x.dat.png", None, UsageError),
    "two-folders": ("a/x.png b/x.png", "out", UsageError),
    "same-twice": ("x.png x.png", None, UsageError),
    "file-for-two": ("x.png y.png", "out.png", UsageError),
    "lossy": ("x.png", "y.jpg", UsageError),
    "no-ending": ("x.png", "y", UsageError),
    "output-is-input": ("x.png", "x.png", UsageError),
    "symbolic-link": ("x.png", "link.png", UsageError),
    "hard-link": ("x.png", "hard.png", UsageError),
    "another-input": ("x.png x.restored.png", None, UsageError),
    "read-only-folder": ("x.png", "closed", OutputError),
    "missing-folder": ("x.png", "no/y.png", OutputError),
    "missing-parent": ("x.png", "no/out/", OutputError),
    "existing": ("y.png", None, OutputError),
    "folder-in-the-way": ("z.png", None, OutputError),
}


@pytest.mark.parametrize("row", [row for row in OUTPUTS if bad_images.NOT_ROOT or row != "read-only-folder"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_output(row, overwrite, tmp_path):
    names, output, error = OUTPUTS[row]
    images(tmp_path, "x.png", "y.restored.png")
    (tmp_path / "link.png").symlink_to("x.png")
    (tmp_path / "hard.png").hardlink_to(tmp_path / "x.png")
    for folder in ("out", "z.restored.png"):
        (tmp_path / folder).mkdir()
    (tmp_path / "closed").mkdir(mode=0o555)
    inputs = images(tmp_path, *names.split())
    output = output and f"{tmp_path}/{output}"
    before = snapshot(tmp_path)
    if overwrite and row == "existing":
        assert plan(inputs, output, overwrite=True, skip_existing=False)
        return
    with pytest.raises(error) as caught:
        plan(inputs, output, overwrite=overwrite, skip_existing=False)
    assert type(caught.value) is error
    assert str(caught.value).isprintable()
    assert str(caught.value).startswith(shown(tmp_path))
    assert snapshot(tmp_path) == before


NAMES = st.tuples(
    st.sampled_from("ab"), st.lists(st.sampled_from([*sorted(IMAGE_SUFFIXES), ".PNG", ".Jpg", ".x"]), max_size=3)
)


@given(st.lists(NAMES.map(lambda parts: parts[0] + "".join(parts[1])), unique=True))
def test_no_two_images_of_a_folder_have_one_output(names):
    found = [Path(name) for name in names if Path(name).suffix.lower() in IMAGE_SUFFIXES]
    assert len({named(path, "restored") for path in found}) == len(found)


def test_the_name_of_an_output_does_not_depend_on_other_images(tmp_path):
    inputs = images(tmp_path, "x.png", "x.jpg", "x.tif", "x.bmp", "x.jpg.png")
    together = plan(inputs, None, overwrite=False, skip_existing=False)
    assert together == [pair for path in inputs for pair in plan([path], None, overwrite=False, skip_existing=False)]
    for _, target in together:
        target.write_bytes(b"")
    assert expand([tmp_path]) == sorted(inputs)


def test_skip_existing_drops_what_is_done(tmp_path):
    inputs = images(tmp_path, "x.png", "y.png")
    images(tmp_path, "x.restored.png")
    assert plan(inputs, None, overwrite=False, skip_existing=True) == [(inputs[1], tmp_path / "y.restored.png")]
    with pytest.raises(UsageError):
        plan(inputs, None, overwrite=True, skip_existing=True)


@given(st.lists(NAMES.map(lambda parts: parts[0] + "".join(parts[1])), unique=True), st.integers(1, 5))
def test_every_path_belongs_to_one_part_whatever_else_there_is(names, count):
    for name in names:
        parts = [part for part in range(1, count + 1) if in_part(name, (part, count))]
        assert len(parts) == 1
    for place in (Path("here"), Path("/else/where")):
        assert names_below([place / name for name in names]) == names


def test_images_of_one_name_in_many_folders_are_in_many_parts() -> None:
    """Wherever the folders are, and whatever else there is in them."""
    for place in (Path("scans"), Path("/mnt/share"), path_of("s3://bucket/scans")):
        paths = [place / f"book {number}" / "page.png" for number in range(20)]
        assert names_below(paths) == [f"book {number}/page.png" for number in range(20)]
    assert len({part for name in names_below(paths) for part in range(1, 5) if in_part(name, (part, 4))}) == 4
    assert names_below([Path("a/x.png")]) == ["x.png"] and names_below([]) == []


def test_parts_have_about_the_same_size():
    paths = [f"scan-{number:05}.png" for number in range(4000)]
    sizes = [sum(in_part(path, (part, 8)) for path in paths) for part in range(1, 9)]
    # The standard deviation of a binomial number is 21.
    assert sum(sizes) == 4000 and max(sizes) - min(sizes) < 170


def test_outputs_are_not_read_again(tmp_path):
    inputs = images(tmp_path, "b.PNG", "a.jpg")
    images(tmp_path, "a.restored.png", "a.corrupted.png", ".hidden.png", "out/a.png", "notes.txt", "no/a.restored.png")
    assert expand([tmp_path], suffix="corrupted") == sorted(inputs)
    assert expand([tmp_path]) == [tmp_path / "a.corrupted.png", inputs[1], inputs[0]]
    # What is named is left to the reader, and a broken link in a folder too.
    (tmp_path / "out" / "b.png").symlink_to("nowhere")
    given = [tmp_path / "missing.txt", tmp_path / "out"]
    assert expand(given) == [given[0], tmp_path / "out/a.png", tmp_path / "out/b.png"]
    with pytest.raises(InputError):
        expand([tmp_path / "no"])


# --- special files ---


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_a_folder_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "broken.png").symlink_to("nowhere")
    (tmp_path / "image.png").touch()
    assert [path.name for path in expand([tmp_path])] == ["broken.png", "image.png"]
