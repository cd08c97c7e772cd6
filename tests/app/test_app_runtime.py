"""Installing the runtime of the local page."""

from __future__ import annotations

import threading
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


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes an archive the one that is published, and those of FILES its members."""

    def published(archive: bytes, mirror: str = "http://127.0.0.1:9/") -> None:
        monkeypatch.setattr(runtime, "RELEASE", released(archive, mirror))
        monkeypatch.setattr(runtime, "MEMBERS", WANTED)

    return published


def test_the_wanted_files_and_no_others_are_installed(
    tmp_path: Path, mirror: Callable[[bytes], str], release: Callable[..., None]
) -> None:
    archive = tarball(FILES)
    release(archive, mirror(archive))
    for source in (None, local(tmp_path, archive)):
        folder = tmp_path / ("downloaded" if source is None else "local") / "deep"
        with pytest.raises(ModelError):
            runtime.installed(folder)
        runtime.install(folder, source)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
            Path(path).name: FILES[path] for path in WANTED
        }
        assert runtime.installed(folder) == {path.name: path for path in folder.iterdir()}
        (folder / "run.wasm").unlink()
        with pytest.raises(ModelError):
            runtime.installed(folder)


@pytest.mark.parametrize("fault", ["tampered", "truncated", "longer", "refused"])
def test_a_wrong_download_leaves_nothing(
    tmp_path: Path, mirror: Callable[..., str], release: Callable[..., None], fault: str
) -> None:
    archive = tarball(FILES)
    sent = {
        "refused": b"",
        "tampered": archive[:-9] + b"x" + archive[-8:],
        "truncated": archive[:99],
        "longer": archive + b"x",
    }
    address = "http://127.0.0.1:9/" if fault == "refused" else mirror(sent[fault], max(len(archive), len(sent[fault])))
    release(archive, address)
    with pytest.raises(ModelError) as raised:
        runtime.install(tmp_path / "there")
    assert "run-1.0.tgz" in str(raised.value) and "\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_an_archive_of_the_users_stays_though_it_is_the_wrong_one(tmp_path: Path, release: Callable[..., None]) -> None:
    path = local(tmp_path, b"another version")
    release(tarball(FILES))
    with pytest.raises(ModelError) as fault:
        runtime.install(tmp_path / "there", path)
    assert "run.tgz" in str(fault.value)
    assert path.exists() and not (tmp_path / "there").exists()


def test_a_folder_that_cannot_be_made_is_an_output_fault(tmp_path: Path, release: Callable[..., None]) -> None:
    archive = tarball(FILES)
    release(archive)
    with pytest.raises(OutputError):
        runtime.install(local(tmp_path, archive) / "there", local(tmp_path, archive))


@pytest.mark.slow
def test_the_real_release_is_what_npm_publishes(tmp_path: Path) -> None:
    try:
        runtime.install(tmp_path)
    except ModelError as missing:
        pytest.skip(str(missing))
    assert set(runtime.installed(tmp_path)) == {path.name for path in tmp_path.iterdir()}
