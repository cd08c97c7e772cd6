"""Installing the runtime of the local page."""

from __future__ import annotations

import io
import tarfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from runtime_files import FILES, WANTED, local, released, tarball

from restore.app import runtime
from restore.errors import ModelError, OutputError


@pytest.fixture
def mirror() -> Iterator[Callable[[bytes], str]]:
    """A web server that answers every request with some content, which may be shorter than it promises."""
    servers = []

    def start(content: bytes, promised: int | None = None) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(promised or len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_wanted_files_and_no_others_are_installed(tmp_path: Path, mirror: Callable[[bytes], str]) -> None:
    archive = tarball(FILES)
    release = released(archive, mirror(archive))
    for source in (None, local(tmp_path, archive)):
        folder = tmp_path / ("downloaded" if source is None else "local") / "deep"
        runtime.install(folder, source, release)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
            Path(path).name: FILES[path] for path in WANTED
        }
        assert dict(runtime.installed(folder, release)) == {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("fault", ["tampered", "truncated", "longer", "refused"])
def test_a_wrong_download_leaves_nothing(tmp_path: Path, mirror: Callable[..., str], fault: str) -> None:
    archive = tarball(FILES)
    sent = {
        "refused": b"",
        "tampered": archive[:-9] + b"x" + archive[-8:],
        "truncated": archive[:99],
        "longer": archive + b"x",
    }
    address = "http://127.0.0.1:9/" if fault == "refused" else mirror(sent[fault], max(len(archive), len(sent[fault])))
    with pytest.raises(ModelError, match=r"run-1\.0\.tgz.*--runtime FILE\.tgz") as raised:
        runtime.install(tmp_path / "there", None, released(archive, address))
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({**FILES, "package/dist/run.mjs": b"import 'http://elsewhere';"}, "holds another package/dist/run.mjs"),
        ({**FILES, "package/dist/run.wasm": bytes(10**6)}, "holds another package/dist/run.wasm"),
        ({"package/dist/run.mjs": FILES["package/dist/run.mjs"]}, "cannot be unpacked"),
        ({f"../{name}": content for name, content in FILES.items()}, "cannot be unpacked"),
    ],
    ids=["other content", "other size", "missing", "path"],
)
def test_archives_that_hold_something_else_are_refused(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    archive = tarball(files)
    with pytest.raises(ModelError, match=message):
        runtime.install(tmp_path / "there", local(tmp_path, archive), released(archive))
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("content", [b"", b"no archive", tarball(FILES)[:60]], ids=["empty", "text", "cut"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ModelError, match="cannot be unpacked"):
        runtime.install(tmp_path / "there", local(tmp_path, content), released(content))


def test_a_member_that_is_a_link_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path in WANTED:
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry)
    with pytest.raises(ModelError, match="holds another"):
        runtime.install(tmp_path / "there", local(tmp_path, buffer.getvalue()), released(buffer.getvalue()))


def test_an_archive_of_the_users_stays_though_it_is_the_wrong_one(tmp_path: Path) -> None:
    path = local(tmp_path, b"another version")
    with pytest.raises(ModelError, match=r"run\.tgz"):
        runtime.install(tmp_path / "there", path, released(tarball(FILES)))
    assert path.exists() and not (tmp_path / "there").exists()


def test_what_was_damaged_since_is_noticed_and_replaced(tmp_path: Path) -> None:
    archive = tarball(FILES)
    release, source = released(archive), local(tmp_path, archive)
    folder = tmp_path / "there"
    with pytest.raises(ModelError, match=r"not installed; `restore app --install`"):
        runtime.installed(folder, release)
    runtime.install(folder, source, release)
    (folder / "run.wasm").write_bytes(bytes(len(FILES[WANTED[1]])))
    with pytest.raises(ModelError, match=r"run\.wasm: is damaged; `restore app --install`"):
        runtime.installed(folder, release)
    runtime.install(folder, source, release)
    runtime.installed(folder, release)


def test_a_folder_that_cannot_be_made_is_an_output_fault(tmp_path: Path) -> None:
    archive = tarball(FILES)
    with pytest.raises(OutputError, match="cannot be made"):
        runtime.install(local(tmp_path, archive) / "there", local(tmp_path, archive), released(archive))


@pytest.mark.slow
def test_the_real_release_is_what_npm_publishes(tmp_path: Path) -> None:
    address = f"{runtime.ONNXRUNTIME_WEB.archive.mirrors[0]}{runtime.ONNXRUNTIME_WEB.archive.name}"
    try:
        with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=5) as answer:
            size = int(answer.headers["Content-Length"])
    except OSError as fault:
        pytest.skip(f"npm's registry cannot be reached: {fault}")
    assert size == runtime.ONNXRUNTIME_WEB.archive.size
    runtime.install(tmp_path)
    assert set(runtime.installed(tmp_path)) == {path.name for path in tmp_path.iterdir()}
