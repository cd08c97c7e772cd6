"""Inputs and outputs by URL: what a bucket holds is restored as files are, and appears whole."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePath

import numpy as np
import pytest
from commands import QUICK, Run, fault, levels, strokes
from PIL import Image

import restore
from restore import buckets
from restore.buckets import Remote, path_of
from restore.errors import RestoreError, TooLarge
from restore.images import format_of

fsspec = pytest.importorskip("fsspec")
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

WORDS = ("--model", QUICK, "--p", 0.1, "--force")
COUNT = 4


@pytest.fixture
def memory() -> Iterator[object]:
    """A store of objects in this process, with pictures in one folder."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture
def filled(memory, tmp_path: Path) -> Path:
    folder = strokes(tmp_path / "in", COUNT)
    for path in folder.iterdir():
        memory.pipe_file(f"/scans/{path.name}", path.read_bytes())
    memory.pipe_file("/scans/notes.txt", b"no image")
    memory.pipe_file("/scans/inner/0009.png", b"not looked into")
    return folder


def objects(memory, folder: str) -> dict[str, bytes]:
    return {PurePath(name).name: memory.cat_file(name) for name in memory.find(folder)}


def test_a_folder_of_a_bucket_becomes_another(run: Run, memory, filled: Path, tmp_path: Path) -> None:
    assert run("denoise", filled, "-o", f"{tmp_path}/out/", *WORDS) == 0
    here = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert run("denoise", "memory://scans", "-o", "memory://clean/", *WORDS) == 0
    assert objects(memory, "/clean") == here and len(here) == COUNT


def test_results_lie_beside_their_images_and_are_no_inputs(run: Run, memory, filled: Path) -> None:
    assert run("denoise", "memory://scans/", *WORDS) == 0
    assert run("denoise", "memory://scans/", *WORDS, "--skip-existing") == 0
    names = set(objects(memory, "/scans"))
    assert {f"000{number}.restored.png" for number in range(COUNT)} <= names and len(names) == 2 * COUNT + 2


def test_a_bucket_and_this_machine_go_together(run: Run, memory, filled: Path, tmp_path: Path) -> None:
    url = (tmp_path / "a name" / "x.png").as_uri()
    (tmp_path / "a name").mkdir()
    assert run("denoise", "memory://scans/0000.png", "-o", url, *WORDS) == 0
    assert run("denoise", (filled / "0000.png").as_uri(), "-o", "memory://out.png", *WORDS) == 0
    assert memory.cat_file("/out.png") == (tmp_path / "a name" / "x.png").read_bytes()
    masks = ("--mask", "memory://masks", "--model", QUICK, "-o", f"{tmp_path}/out/")
    hole = np.zeros((28, 28), np.uint8)
    hole[8:12, 8:12] = 255
    Image.fromarray(hole).save(tmp_path / "hole.png")
    for number in range(COUNT):
        memory.pipe_file(f"/masks/000{number}.png", (tmp_path / "hole.png").read_bytes())
    assert run("complete", "memory://scans", *masks, "--uncertainty", "memory://maps/") == 0
    assert len(objects(memory, "/maps")) == COUNT == len(list((tmp_path / "out").iterdir()))


def test_existing_objects_are_kept_or_replaced_as_files_are(
    run: Run, memory, filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("denoise", "memory://scans", "-o", "memory://clean/", *WORDS)
    memory.pipe_file("/clean/0001.restored.png", b"mine")
    assert run(*words) == 5
    assert "memory://clean/0001.restored.png" in fault(capsys) and len(objects(memory, "/clean")) == 1
    assert run(*words, "--skip-existing") == 0
    assert len(objects(memory, "/clean")) == COUNT and memory.cat_file("/clean/0001.restored.png") == b"mine"
    assert run(*words, "--overwrite") == 0
    assert memory.cat_file("/clean/0001.restored.png") != b"mine"


def test_parts_of_a_bucket_are_those_of_a_folder(run: Run, memory, filled: Path, tmp_path: Path) -> None:
    assert run("denoise", "memory://scans", "-o", "memory://clean/", *WORDS, "--part", "1/2") == 0
    assert run("denoise", filled, "-o", f"{tmp_path}/out/", *WORDS, "--part", "1/2") == 0
    assert set(objects(memory, "/clean")) == {path.name for path in (tmp_path / "out").iterdir()}


def test_an_input_is_never_replaced(run: Run, memory, filled: Path) -> None:
    before = objects(memory, "/scans")
    assert run("denoise", "memory://scans/0000.png", "-o", "memory://scans/0000.png", *WORDS, "--overwrite") == 2
    assert run("denoise", "memory://scans/0000.png", "memory://scans/0001.png", "-o", "memory://one.png", *WORDS) == 2
    assert objects(memory, "/scans") == before


@pytest.mark.parametrize(
    ("name", "code"),
    [("memory://scans/none.png", 3), ("memory://nothing/", 3), ("nosuch://scans/x.png", 3)],
    ids=["object", "folder", "scheme"],
)
def test_what_is_not_there_is_named(
    name: str, code: int, run: Run, memory, filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("denoise", name, "-o", "memory://out.png", *WORDS) == code
    assert name.rstrip("/") in fault(capsys)


def test_a_store_that_refuses_fails_each_image_and_leaves_nothing(
    run: Run, memory, filled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Refused(Exception):
        """What libraries of buckets raise is often no OSError."""

    def pipe_file(self: object, path: str, *given: object, **more: object) -> None:
        raise Refused("AccessDenied")

    monkeypatch.setattr(type(memory), "pipe_file", pipe_file)
    assert run("denoise", "memory://scans", "-o", "memory://clean/", *WORDS) == 6
    assert capsys.readouterr().err.count("AccessDenied") == COUNT
    assert not memory.exists("/clean")


def test_an_object_is_written_in_one_call(run: Run, memory, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a store shows it whole or not at all; nothing else is opened to write."""
    modes, open_file = list[str](), type(memory).open
    monkeypatch.setattr(
        type(memory),
        "open",
        lambda self, path, mode="rb", **more: (
            modes.append("whole" if "data" in more else mode),
            open_file(self, path, mode, **more),
        )[1],
    )
    assert run("denoise", "memory://scans/0000.png", "-o", "memory://out.png", *WORDS) == 0
    assert set(modes) <= {"rb", "whole"} and "rb" in modes


def test_endless_objects_are_not_read_to_their_end(memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.pipe_file("/long.png", bytes(2**26 + 1000))
    with pytest.raises(TooLarge):
        restore.denoise("memory://long.png", QUICK, p=0.1, max_pixels=10)


def test_python_reads_urls_too(memory, filled: Path) -> None:
    image = restore.denoise("memory://scans/0000.png", QUICK, p=0.1, force=True)
    again = restore.denoise(filled / "0000.png", QUICK, p=0.1, force=True)
    assert np.array_equal(np.asarray(image), np.asarray(again)) and levels(filled / "0000.png").any()


def test_without_the_library_a_line_names_the_extra(tmp_path: Path) -> None:
    code = "import sys; sys.modules['fsspec'] = None; from restore.cli import main; main()"
    words = [sys.executable, "-c", code, "denoise", "memory://a.png", "-o", str(tmp_path / "x.png")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "restore-prior[buckets]" in done.stderr and len(done.stderr.splitlines()) == 1


# A URL, one of the same folder with another name, the name, and one of a name in it as a folder.
URLS = [
    ("s3://b/k/a.png", "s3://b/k/y.png", "a.png", "s3://b/k/a.png/y.png"),
    ("s3://b/k//a.png", "s3://b/k//y.png", "a.png", "s3://b/k//a.png/y.png"),
    ("s3://b/./a.png", "s3://b/./y.png", "a.png", "s3://b/./a.png/y.png"),
    ("s3://b/k//", "s3://b/y.png", "k", "s3://b/k//y.png"),
    ("hdfs:///data/a.png", "hdfs:///data/y.png", "a.png", "hdfs:///data/a.png/y.png"),
    ("memory://", "memory://y.png", "", "memory://y.png"),
    ("gs://b", "gs://y.png", "b", "gs://b/y.png"),
    ("az://c@d.e/x", "az://c@d.e/y.png", "x", "az://c@d.e/x/y.png"),
    ("github://o:r@main/d/a.png", "github://o:r@main/d/y.png", "a.png", "github://o:r@main/d/a.png/y.png"),
    ("zip://d/a.png::s3://b/c.zip", "zip://d/y.png::s3://b/c.zip", "a.png", "zip://d/a.png/y.png::s3://b/c.zip"),
    ("zip://a.png::file://w/z.zip", "zip://y.png::file://w/z.zip", "a.png", "zip://a.png/y.png::file://w/z.zip"),
    ("simplecache::s3://b/k//a.png", "simplecache::s3://b/k//y.png", "a.png", "simplecache::s3://b/k//a.png/y.png"),
    ("https://h/d/a.png?sig=x/y", "https://h/d/y.png?sig=x/y", "a.png", "https://h/d/a.png/y.png?sig=x/y"),
]


@pytest.mark.parametrize(("name", "beside", "last", "inside"), URLS)
def test_urls_stay_what_they_are(name: str, beside: str, last: str, inside: str) -> None:
    path = path_of(name)
    assert isinstance(path, Remote) and str(path) == name and path == path_of(name) and path.name == last
    assert (str(path.with_name("y.png")), str(path / "y.png")) == (beside, inside)
    assert str((path / "y.png").with_name("z.png")) == inside.replace("y.png", "z.png")
    assert format_of(inside) == "PNG"


def test_chained_urls_and_empty_names_in_keys_are_followed(run: Run, memory, filled: Path, tmp_path: Path) -> None:
    first, second = ((filled / name).read_bytes() for name in ("0000.png", "0001.png"))
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("in/a.png", first)
    memory.pipe_file("/k//a.png", second)
    memory.pipe_file("/k/a.png", first)
    assert buckets.read(path_of(f"zip://in/a.png::file://{tmp_path}/z.zip"), 10**6) == first
    assert buckets.read(path_of("memory://k//a.png"), 10**6) == second
    assert run("denoise", f"zip://in/a.png::file://{tmp_path}/z.zip", "-o", "memory://one.png", *WORDS) == 0
    assert run("denoise", "memory://k//a.png", *WORDS) == 0 and run("denoise", "memory://k/a.png", *WORDS) == 0
    assert memory.cat_file("/k//a.restored.png") != memory.cat_file("/k/a.restored.png") == memory.cat_file("/one.png")
    assert run("denoise", "memory://k//a.png", *WORDS) == 5  # it exists


ALIASES = [
    ("memory://scans/0000.png", "memory:///scans/0000.png"),
    ("simplecache::memory://scans/0000.png", "memory://scans/0000.png"),
    ("local://{here}", "{here}"),
    ("{here}", "local://{here}"),
    ("file://{here}", "local://{here}"),
]


@pytest.mark.parametrize(("read", "written"), ALIASES)
def test_two_spellings_of_one_object_are_one(
    read: str, written: str, run: Run, memory, filled: Path, tmp_path: Path
) -> None:
    here = filled / "0000.png"
    before, content = objects(memory, "/scans"), here.read_bytes()
    read, written = (url.format(here=here) for url in (read, written))
    assert run("denoise", read, "-o", written, *WORDS, "--overwrite") == 2
    assert objects(memory, "/scans") == before and here.read_bytes() == content


class Aliased(MemoryFileSystem):  # type: ignore[misc]
    """A store with two protocols, as that of s3 has, and settings in its URLs."""

    protocol = ("one", "two")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(re.sub("^(one|two)://([^/]*@)?", "memory://", path))

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        user = re.match(r"\w+://([^/]*)@", path)
        return {"username": user[1]} if user else {}


def test_protocols_and_users_of_one_store_are_one(memory) -> None:
    for name in Aliased.protocol:
        fsspec.register_implementation(name, Aliased, clobber=True)
    keys = {buckets.identity(path_of(url)) for url in ("one://b/x", "two://b/x", "one://me:pw@b/x", "two://you@b/x")}
    assert len({key[-1] for key in keys}) == len(keys) == 1
    assert buckets.identity(path_of("one://b/y")) not in keys
    assert buckets.identity(path_of("nosuch://b/y")) == path_of("nosuch://b/y")


SECRETS = [
    "ftp://someone:TOPSECRET@127.0.0.1:1/x.png",
    "sftp://TOPSECRET@127.0.0.1:1/x.png",
    "http://127.0.0.1:1/x.png?X-Amz-Credential=TOPSECRET&X-Amz-Signature=TOPSECRET",
    "http://127.0.0.1:1/x.png?TOPSECRET",
    "zip://a.png::http://someone:TOPSECRET@127.0.0.1:1/z.zip?sig=TOPSECRET",
    "simplecache::ftp://someone:TOPSECRET@127.0.0.1:1/x.png",
    "nosuch://someone:TOPSECRET@h/x.png?token=TOPSECRET",
]


@pytest.mark.parametrize("url", SECRETS)
def test_no_message_tells_who_asks(
    url: str, run: Run, memory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = strokes(tmp_path, 1) / "0000.png"
    for words in ((url, "-o", tmp_path / "y.png"), (url, "-o", url, "--json", "--debug"), (image, "-o", url)):
        assert run("denoise", *words, *WORDS) != 0
        said = "".join(capsys.readouterr())
        assert said and "TOPSECRET" not in said and "someone" not in said
    with pytest.raises(RestoreError) as caught:
        restore.denoise(url, QUICK, p=0.1)
    assert "TOPSECRET" not in f"{caught.value} {caught.value.subject}"


def test_a_result_is_not_named_after_a_signature(run: Run, mirror, tmp_path: Path, capsys) -> None:
    pytest.importorskip("aiohttp")
    content = (strokes(tmp_path / "in", 1) / "0000.png").read_bytes()
    mirror.answers["/scan.png?sig=TOPSECRET"] = 200, content
    url = f"{mirror.address}/scan.png?sig=TOPSECRET"
    assert run("denoise", url, "-o", f"{tmp_path}/out/", *WORDS) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["scan.restored.png"]
    said = capsys.readouterr().err
    assert "scan.png?sig=***" in said and "TOPSECRET" not in said


def test_this_machine_may_be_named() -> None:
    assert path_of("file://localhost/a/b.png") == path_of("file:///a/b.png") == Path("/a/b.png")
    assert path_of("file://localhost.png") == Path("localhost.png")


@pytest.mark.parametrize("name", ["a:/b.png", "C://b", "-", "a/b://c", "://x"])
def test_files_of_this_machine_are_no_urls(name: str) -> None:
    assert path_of(name) == Path(name)


def test_folders_are_told_from_objects(memory, filled: Path) -> None:
    assert buckets.is_folder("memory://scans") and not buckets.is_folder("memory://scans/0000.png")
    assert not buckets.is_folder("memory://nothing")
