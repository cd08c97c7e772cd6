"""Priors shared as one file: what was packed is what is kept, and nothing else ever is."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import stat
import sys
import types
import zipfile
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from commands import QUICK, Run, fault, levels
from processes import Mirror
from safetensors import safe_open
from safetensors.numpy import save

from restore import zoo
from restore.export import bundle
from restore.export.bundle import FILES, MANIFEST, pack
from restore.zoo import limits

Files = dict[str, bytes]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's priors, empty."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home" / "restore" / "models"


def of_folder(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def packed(files: Files, **changed: object) -> bytes:
    """A bundle of files whose manifest fits them, but for what is changed of it."""
    header = zoo.describe(zoo.find(QUICK)).to_header()
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = {"format": 1, "header": header, "sha256": digests} | changed
    return zipped({MANIFEST: json.dumps(manifest).encode(), **files})


def zipped(files: dict[str, bytes] | list[tuple[str, bytes]]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, content)
    return made.getvalue()


def test_a_prior_goes_from_one_user_to_another(run: Run, home: Path, tmp_path: Path) -> None:
    assert run("export", QUICK, "--bundle", "shared.zip") == 0
    content = Path("shared.zip").read_bytes()
    assert run("export", QUICK, "--bundle", "shared.zip") == 5
    assert run("export", QUICK, "--bundle", "again.zip") == 0 and Path("again.zip").read_bytes() == content
    assert set(zipfile.ZipFile("shared.zip").namelist()) == {MANIFEST, *FILES}
    assert run("import", "shared.zip", "--name", "theirs", "--quiet") == 0
    assert of_folder(home / "theirs") == of_folder(zoo.find(QUICK))
    assert run("import", "shared.zip", "--name", "theirs") == 5
    assert run("import", "shared.zip", "--name", "theirs", "--overwrite") == 0
    image = Path(__file__).parent.parent.parent / "assets" / "digit-noisy.png"
    for name in (QUICK, "theirs"):
        assert run("denoise", image, "--model", name, "--p", 0.1, "-o", f"{name}.png") == 0
    assert np.array_equal(levels(Path(f"{QUICK}.png")), levels(Path("theirs.png")))


def test_a_bundle_has_a_name_of_its_own(run: Run, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("shared.zip").write_bytes(pack(zoo.find(QUICK)))
    assert run("import", "shared.zip") == 5 and QUICK in fault(capsys)  # as a published prior has that name
    assert run("import", "shared.zip", "--name", "../mine") == 2
    assert not home.exists()


def test_a_prior_without_graph_and_card_replaces_all_of_another(home: Path) -> None:
    files = of_folder(zoo.find(QUICK))
    bundle.keep(files, home / "mine")
    bundle.keep({zoo.WEIGHTS: files[zoo.WEIGHTS]}, home / "mine")
    assert of_folder(home / "mine") == {zoo.WEIGHTS: files[zoo.WEIGHTS]}


def test_a_url_gives_the_file_with_that_checksum_or_nothing(
    mirror: Mirror, run: Run, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = pack(zoo.find(QUICK))
    mirror.answers["/shared.zip"] = (200, content)
    digest, url = hashlib.sha256(content).hexdigest(), f"{mirror.address}/shared.zip"
    assert run("import", url, "--name", "one") == 0
    assert run("import", url, "--name", "two", "--sha256", digest.upper()) == 0
    assert of_folder(home / "one") == of_folder(home / "two") == of_folder(zoo.find(QUICK))
    capsys.readouterr()
    other = hashlib.sha256(b"").hexdigest()
    Path("shared.zip").write_bytes(content)
    assert run("import", "shared.zip", "--name", "three", "--sha256", digest) == 0
    for source in (url, "shared.zip"):
        capsys.readouterr()
        assert run("import", source, "--name", "four", "--sha256", other) == 3 and source in fault(capsys)
        assert run("import", source, "--name", "four", "--sha256", "12") == 2 and "--sha256" in fault(capsys)
    assert run("import", mirror.address + "/gone.zip", "--name", "four") == 3 and "/gone.zip" in fault(capsys)
    assert run("import", "gone.zip", "--name", "four", "--sha256", digest) == 3 and "gone.zip" in fault(capsys)
    assert not (home / "four").exists()


def test_a_download_ends_at_the_largest_size(
    mirror: Mirror, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.answers["/endless"] = (200, bytes(2**22))
    monkeypatch.setattr(limits, "PACKED", 2**21)
    assert run("import", f"{mirror.address}/endless", "--name", "mine") == 3
    assert not home.exists()


def test_the_address_of_a_bad_bundle_is_named(mirror: Mirror, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    mirror.answers["/bad.zip"] = (200, packed(of_folder(zoo.find(QUICK)), format=2))
    assert run("import", f"{mirror.address}/bad.zip", "--name", "mine") == 4
    said = fault(capsys)
    assert f"{mirror.address}/bad.zip" in said and "/tmp" not in said


def altered(files: Files) -> Files:
    return files | {zoo.CARD: files[zoo.CARD] + b"."}


def with_other_graph(files: Files) -> bytes:
    return packed(files | {zoo.GRAPH: (zoo.find("tap-mnist-50") / zoo.GRAPH).read_bytes()})


def with_other_header(files: Files) -> bytes:
    other = of_folder(zoo.find("tap-mnist-50"))
    return packed({zoo.WEIGHTS: other[zoo.WEIGHTS]})


def with_nan(files: Files) -> bytes:
    with safe_open(zoo.find(QUICK) / zoo.WEIGHTS, "numpy") as stored:
        tensors, header = {name: stored.get_tensor(name) for name in stored.keys()}, stored.metadata()  # noqa: SIM118
    tensors["weights.0"][3, 2] = np.nan
    return packed({zoo.WEIGHTS: save(tensors, header)})


def as_link(files: Files) -> bytes:
    made = io.BytesIO(packed({name: files[name] for name in (zoo.WEIGHTS, zoo.CARD)}))
    with zipfile.ZipFile(made, "a") as archive:
        link = zipfile.ZipInfo(zoo.GRAPH)
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    return made.getvalue()


def twice(files: Files) -> bytes:
    manifest = zipfile.ZipFile(io.BytesIO(packed(files))).read(MANIFEST)
    with pytest.warns(UserWarning, match="Duplicate"):
        return zipped([(MANIFEST, manifest), *files.items(), (zoo.CARD, b"another")])


BAD: dict[str, tuple[Callable[[Files], bytes], int]] = {
    "leads out": (lambda files: packed(files | {"../weights.safetensors": b""}), 3),
    "absolute": (lambda files: packed(files | {"/etc/weights.safetensors": b""}), 4),
    "another file": (lambda files: packed(files | {"setup.py": b""}), 4),
    "a folder in it": (lambda files: packed(files | {"deep/card.md": b""}), 4),
    "twice": (twice, 4),
    "link": (as_link, 4),
    "bomb": (lambda files: packed(files | {zoo.CARD: bytes(2**23)}), 3),
    "bomb of parts": (lambda files: packed(files | dict.fromkeys((zoo.CARD, zoo.GRAPH), bytes(3 * 2**20))), 3),
    "checksum": (lambda files: packed(altered(files), sha256=bundle._digests(files)), 4),
    "one file less": (lambda files: packed({zoo.WEIGHTS: files[zoo.WEIGHTS]}, sha256=bundle._digests(files)), 4),
    "no checksums": (lambda files: packed(files, sha256={}), 4),
    "newer": (lambda files: packed(files, format=2), 4),
    "header": (lambda files: packed(files, header={}), 4),
    "header of another": (with_other_header, 4),
    "graph of another": (with_other_graph, 4),
    "no weights": (lambda files: packed({zoo.CARD: files[zoo.CARD]}), 4),
    "NaN": (with_nan, 4),
    "manifest of text": (lambda files: zipped({MANIFEST: b"{", **files}), 4),
    "manifest of numbers": (lambda files: zipped({MANIFEST: b"[1]", **files}), 4),
    "deep manifest": (lambda files: zipped({MANIFEST: b"[" * 10**5, **files}), 4),
    "cut": (lambda files: packed(files)[:-30], 3),
    "cut to its first bytes": (lambda files: packed(files)[:20], 3),
    "long card": (lambda files: packed(files | {zoo.CARD: bytes(2**20 + 1)}), 4),
    "format of truth": (lambda files: packed(files, format=True), 4),
    "format of a float": (lambda files: packed(files, format=1.0), 4),
    "one bit": (lambda files: flipped(packed(files)), 3),
}


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


@pytest.mark.parametrize(("bad", "code"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("named", [True, False])
def test_a_bad_bundle_leaves_nothing(
    bad: Callable[[Files], bytes],
    code: int,
    named: bool,
    run: Run,
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PACKED", 2**22)
    Path("bad.zip").write_bytes(bad(of_folder(zoo.find(QUICK))))
    assert run("import", "bad.zip", *["--name", "mine"][: 2 * named], "--quiet") == code
    assert "bad.zip" in fault(capsys)
    assert not home.exists() and [path.name for path in tmp_path.iterdir()] == ["bad.zip"]


@pytest.mark.parametrize("address", ["none.zip", "htps://example.org/x.zip", "folder/none.npz"])
def test_a_bad_address_is_named(address: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--name", "mine"), ("--name", "mine", "--sha256", "0" * 64)):
        assert run("import", address, *more) == 3
        assert address in fault(capsys)


@pytest.mark.parametrize(
    "address", ["https://me:TOPSECRET@127.0.0.1:1/x.zip", "http://127.0.0.1:1/x.zip?sig=TOPSECRET"]
)
def test_no_message_tells_who_asks_for_a_bundle(address: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", address, "--name", "mine") == 3
    assert "TOPSECRET" not in fault(capsys)


def test_nobody_is_told_where_a_download_was_sent_on_to(
    mirror: Mirror, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sent_on(url: str, **how: object) -> None:
        raise OSError(
            f"no answer to {url}: Max retries exceeded with url: /x.zip?X-Amz-Signature=TOPSECRET&n=1 (refused)"
        )

    monkeypatch.setattr("requests.get", sent_on)
    assert run("import", f"{mirror.address}/x.zip", "--name", "mine") == 3
    said = fault(capsys)
    assert "TOPSECRET" not in said and f"{mirror.address}/x.zip" in said


def test_damaged_priors_are_not_packed(run: Run, tmp_path: Path) -> None:
    shutil.copytree(zoo.find(QUICK), tmp_path / "mine")
    (tmp_path / "mine" / zoo.GRAPH).write_bytes((zoo.find("tap-mnist-50") / zoo.GRAPH).read_bytes())
    assert run("export", tmp_path / "mine", "--bundle", "mine.zip") == 4
    (tmp_path / "mine" / zoo.GRAPH).unlink()
    assert run("export", tmp_path / "mine", "--bundle", "mine.onnx") == 2
    assert run("export", tmp_path / "mine", "--bundle", "mine.zip", "--float16") == 2
    assert not Path("mine.zip").exists() and not Path("mine.onnx").exists()
    assert run("export", tmp_path / "mine", "--bundle", "mine.zip") == 0
    assert zoo.GRAPH not in zipfile.ZipFile("mine.zip").namelist()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the Hugging Face hub: OWNER/NAME, with what is used of the signature of its function."""
    place = tmp_path / "hub"

    def snapshot_download(
        repo_id: str, *, revision: str | None, local_dir: str | Path, allow_patterns: list[str] | str
    ) -> str:
        if not (place / repo_id).is_dir() or revision not in (None, "main"):
            raise OSError(f"404: {repo_id} {revision}")
        for path in (place / repo_id).iterdir():
            if any(fnmatch(path.name, pattern) for pattern in allow_patterns):
                assert path.name in FILES
                shutil.copy(path, local_dir)
        return str(local_dir)

    monkeypatch.setitem(sys.modules, "huggingface_hub", types.SimpleNamespace(snapshot_download=snapshot_download))
    return place


def test_a_prior_comes_from_the_hub_by_name(
    hub: Path, run: Run, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(zoo.find(QUICK), hub / "someone" / "digits")
    (hub / "someone" / "digits" / "train.py").write_text("raise SystemExit", "utf-8")
    assert run("import", "hf:someone/digits", "--name", "one") == 0
    assert run("import", "hf:someone/digits@main", "--name", "two") == 0
    assert of_folder(home / "one") == of_folder(home / "two") == of_folder(zoo.find(QUICK))
    capsys.readouterr()
    for source in ("hf:someone/else", "hf:someone/digits@old"):
        assert run("import", source, "--name", "three") == 3 and source in fault(capsys)
    assert run("import", "hf:someone/digits", "--name", "three", "--sha256", "0" * 64) == 2
    capsys.readouterr()
    (hub / "someone" / "digits" / zoo.WEIGHTS).write_bytes(b"none")
    assert run("import", "hf:someone/digits", "--name", "three") == 4 and "hf:someone/digits" in fault(capsys)
    assert not (home / "three").exists()


def test_the_hub_needs_its_library(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert run("import", "hf:someone/digits", "--name", "one") == 2
    assert "restore-prior[hub]" in fault(capsys)
