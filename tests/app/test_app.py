"""The local page: its site, the server, and the command."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest
import torch
from priors import random_conditional, random_prior
from runtime_files import FILES, local, released, tarball
from waiting import HANG, wait_for

from restore import zoo
from restore.app import assembly, runtime
from restore.app.server import Server
from restore.errors import ModelError, OutputError, UsageError
from restore.inference.pictures import INVERTED, outcome
from restore.marginals import Status

ROOT = Path(__file__).parents[2]

SITE = Path(assembly.__file__).parent / "site"


# ---------------------------------------------------------------------------------------------------------- the site


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of a prior, a conditional one for dark on light images, one without a graph, and two damaged ones."""
    parent = tmp_path_factory.mktemp("models")
    conditional = random_conditional()
    dark = replace(conditional, pixel_means=torch.full_like(conditional.pixel_means, 0.9))
    folders = []
    plain = {name: random_prior() for name in ("told", "bare", "bad", "worse")}
    for name, prior in (plain | {"seer": dark}).items():
        zoo.save(parent / name, prior, f"# {name}\n")
        folders.append(parent / name)
        if name != "bare":
            # Nobody runs it here.
            shutil.copy(ROOT / "models" / "tap-mnist" / zoo.GRAPH, parent / name)
    (parent / "bad" / zoo.WEIGHTS).write_bytes(b"no safetensors")
    (parent / "worse" / zoo.GRAPH).write_bytes(b"no graph")
    return folders


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stand-ins for the files of onnxruntime-web."""
    folder = tmp_path_factory.mktemp("ort")
    paths = {name: folder / name for name in ("run.mjs", "run.wasm")}
    for name, path in paths.items():
        path.write_bytes(name.encode())
    return paths


@pytest.fixture(scope="module")
def site(files: dict[str, Path], priors: list[Path]) -> assembly.Site:
    with pytest.warns(UserWarning) as told:
        made = assembly.collect(files, priors)
    bad, worse = (str(warning.message) for warning in told)
    assert "bad/weights.safetensors: damaged or not a safetensors file" in bad
    assert "worse/solver.onnx: is no graph that can be run" in worse
    return made


def test_the_site_is_the_page_the_runtime_and_the_priors_with_a_graph(site: assembly.Site) -> None:
    page = {path.name for path in SITE.iterdir() if path.is_file()}
    assert {"index.html", "page.js", "worker.js", "style.css"} <= page
    graphs = {f"models/{name}/{file}" for name in ("told", "seer") for file in (zoo.GRAPH, zoo.WEIGHTS)}
    assert set(site) == page | graphs | {"ort/run.mjs", "ort/run.wasm", "models.json"}


def test_the_list_of_models_says_what_the_page_needs(site: assembly.Site) -> None:
    listing = json.loads(bytes(site["models.json"]))
    assert listing["preferred"] == zoo.PREFERRED_BINARY
    told, seer = listing["priors"]
    assert told == {
        "name": "told",
        "width": 12,
        "height": 10,
        "hidden": 5,
        "threshold": 127,
        "conditional": False,
        "task": "",
        "polarity": "light on dark",
        "method": "none",
        "data": "noise",
        "inference": {"max_iter": 1000, "tol": 0.01, "damping": 0.3},
        "inverted": INVERTED,
        "outcomes": told["outcomes"],
        "bytes": told["bytes"],
    }
    assert told["bytes"] > len("graph of told")
    assert (seer["conditional"], seer["task"], seer["polarity"]) == (True, "flip:0.1", "dark on light")


def test_a_site_without_priors_is_refused(files: dict[str, Path], priors: list[Path]) -> None:
    with pytest.raises(ModelError, match=r"no prior has a solver\.onnx"):
        assembly.collect(files, [folder for folder in priors if folder.name == "bare"])


def test_the_site_is_written_for_any_web_server(site: assembly.Site, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "site"
    assembly.write(site, folder)
    written = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert written == {name: part if isinstance(part, bytes) else part.read_bytes() for name, part in site.items()}


def test_a_folder_in_use_is_refused_and_left_alone_unless_overwriting(site: assembly.Site, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match="exists already; give --overwrite"):
        assembly.write(site, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assembly.write(site, tmp_path, overwrite=True)
    assert (tmp_path / "mine.txt").read_text() == "mine" and (tmp_path / "models.json").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_in_place_of_the_folder_is_refused(site: assembly.Site, tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError):
        assembly.write(site, tmp_path / "file", overwrite=overwrite)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["digit.png", "silhouette.png"])
def test_the_examples_of_the_page_are_those_drawn_by_our_script(name: str) -> None:
    assert (SITE / name).read_bytes() == (ROOT / "assets" / name).read_bytes()


def test_the_page_uses_the_words_of_the_command_line(site: assembly.Site) -> None:
    priors = random_prior(), random_conditional()
    for listed, prior in zip(json.loads(bytes(site["models.json"]))["priors"], priors, strict=True):
        assert listed["outcomes"] == {status.name.lower(): outcome(status, prior.description) for status in Status}
    # And has none of its own.
    said = (SITE / "outcome.js").read_text()
    assert not any(status.sentence in said for status in Status) and "trained with" not in said


def test_the_page_names_no_place_outside() -> None:
    for path in SITE.iterdir():
        if path.suffix in {".html", ".js", ".css"}:
            assert "://" not in path.read_text(), path.name


def test_the_page_has_no_scripts_or_styles_in_line() -> None:
    page = (SITE / "index.html").read_text()
    assert "style=" not in page and "<style" not in page and " on" not in page.replace(" on ", "")
    assert page.count("<script") == page.count("<script type=") == 1


# -------------------------------------------------------------------------------------------------------- the server


@pytest.fixture(scope="module")
def server(site: assembly.Site, priors: list[Path]) -> Iterator[Server]:
    (priors[0] / "secret").symlink_to("/etc/passwd")
    with Server(site, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def ask(
    server: Server, target: str, method: str = "GET", host: str | None = "localhost"
) -> tuple[http.client.HTTPResponse, bytes]:
    """The answer to a request whose target is sent as it is."""
    connection = http.client.HTTPConnection(*server.server_address, timeout=HANG)
    connection.putrequest(method, target, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


TYPES = {
    "/": "text/html; charset=utf-8",
    "/index.html": "text/html; charset=utf-8",
    "/style.css": "text/css; charset=utf-8",
    "/page.js": "text/javascript; charset=utf-8",
    "/digit.png": "image/png",
    "/models.json": "application/json",
    "/ort/run.mjs": "text/javascript; charset=utf-8",
    "/ort/run.wasm": "application/wasm",
    "/models/told/solver.onnx": "application/octet-stream",
    "/models/told/weights.safetensors": "application/octet-stream",
}


@pytest.mark.parametrize("target", TYPES)
def test_every_file_has_its_type_and_the_headers(server: Server, site: assembly.Site, target: str) -> None:
    answer, content = ask(server, target)
    source = site[target[1:] or "index.html"]
    assert answer.status == 200 and answer.version == 11
    assert content == (source if isinstance(source, bytes) else source.read_bytes())
    assert answer.headers["Content-Type"] == TYPES[target]
    assert int(answer.headers["Content-Length"]) == len(content)
    check_headers(answer)


def check_headers(answer: http.client.HTTPResponse) -> None:
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["connect-src"] == policy["worker-src"] == "'self'"
    assert policy["script-src"] == "'self' 'wasm-unsafe-eval'" and "unsafe-inline" not in str(policy)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "Python" not in answer.headers["Server"]


def test_a_query_is_ignored(server: Server) -> None:
    assert ask(server, "/page.js?x=/../..")[0].status == 200


@pytest.mark.parametrize(
    "target",
    [
        "/../pyproject.toml",
        "/../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%252e%252e/etc/passwd",
        "/models/told/../../index.html",
        "/models/told/secret",
        "//etc/passwd",
        "/etc/passwd",
        "/\\..\\..",
        "/index.html%00",
        "/models",
        "/models/",
        "/models/told/",
        "/ort/",
        "/models/bare/weights.safetensors",
        "/models/bad/weights.safetensors",
        "/nothing.html",
        "index.html",
        "http://localhost/index.html",
        "http://example.org/",
        "*",
    ],
)
def test_anything_else_is_not_found(server: Server, target: str) -> None:
    answer, content = ask(server, target)
    assert answer.status == 404
    assert b"root:" not in content and b"solver.onnx" not in content
    check_headers(answer)


def test_head_sends_the_headers_alone(server: Server) -> None:
    answer, content = ask(server, "/index.html", "HEAD")
    assert answer.status == 200 and content == b""
    assert int(answer.headers["Content-Length"]) == (SITE / "index.html").stat().st_size
    assert ask(server, "/nothing", "HEAD")[0].status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    answer, _ = ask(server, "/", method)
    assert answer.status == 501
    check_headers(answer)


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1", "127.0.0.1:9000"])
def test_this_machine_is_answered(server: Server, host: str) -> None:
    assert ask(server, "/", host=host)[0].status == 200


@pytest.mark.parametrize(
    "host", ["example.org", "example.org:8000", "localhost.example.org", "127.0.0.1.example.org:80", "", "::1", None]
)
def test_a_name_that_was_pointed_at_this_machine_is_not_answered(server: Server, host: str | None) -> None:
    answer, content = ask(server, "/models.json", host=host)
    assert answer.status == 421 and b"told" not in content


def test_two_hosts_are_not_answered(server: Server) -> None:
    with socket.create_connection(server.server_address, 10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.org\r\nConnection: close\r\n\r\n")
        assert connection.makefile("rb").readline().split()[1] == b"421"


def test_one_connection_serves_many_requests(server: Server) -> None:
    connection = http.client.HTTPConnection(*server.server_address, timeout=HANG)
    for target, status in (("/", 200), ("/nothing", 404), ("/page.js", 200)):
        connection.request("GET", target)
        answer = connection.getresponse()
        assert answer.status == status
        answer.read()
    connection.close()


def test_it_listens_on_this_machine_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_address[1]}/"


def test_a_file_that_has_gone_is_not_found(files: dict[str, Path], tmp_path: Path) -> None:
    with Server({"gone.js": tmp_path / "gone.js"}, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{running.url}gone.js", timeout=HANG)
        running.shutdown()


def test_a_browser_that_hangs_up_is_no_fault(capfd: pytest.CaptureFixture[str]) -> None:
    with Server({"large": bytes(50_000_000)}, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        with socket.create_connection(running.server_address, 10) as connection:
            connection.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            connection.recv(1000)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Each answer has a thread of its own, and one that is given up ends without a word.
        wait_for(lambda: not any("process_request" in thread.name for thread in threading.enumerate()))
        running.shutdown()
    assert capfd.readouterr() == ("", "")


def test_a_port_in_use_is_a_usage_fault(server: Server, site: assembly.Site) -> None:
    with pytest.raises(UsageError, match=rf"port {server.server_address[1]} is in use; give another with --port"):
        Server(site, server.server_address[1])


# ------------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, priors: list[Path]) -> Path:
    """A user data folder with a small runtime in it, and the small priors as the published ones."""
    home = tmp_path / "home"
    archive = tarball(FILES)
    monkeypatch.setattr(platformdirs, "user_data_dir", lambda *_: str(home))
    monkeypatch.setattr(zoo.search, "published_folder", lambda: priors[0].parent)
    release = released(archive)
    monkeypatch.setattr(runtime.install, "__defaults__", (None, release))
    monkeypatch.setattr(runtime.installed, "__defaults__", (release,))
    runtime.install(runtime.user_folder(), local(tmp_path, archive))
    return home


@pytest.fixture
def app(run: Callable[..., int]) -> Callable[..., int]:
    return lambda *words: run("app", *words)


def test_output_writes_the_site(home: Path, app: Callable[..., int], tmp_path: Path) -> None:
    assert app("--output", tmp_path / "site") == 0
    assert (tmp_path / "site" / "index.html").exists() and (tmp_path / "site" / "ort" / "run.wasm").exists()
    assert app("--output", tmp_path / "site") == 5
    assert app("--output", tmp_path / "site", "--overwrite") == 0


def test_without_the_runtime_the_command_names_its_installation(
    home: Path, app: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in runtime.user_folder().iterdir():
        path.unlink()
    assert app("--no-browser") == 4
    assert "`restore app --install`" in capsys.readouterr().err
    assert app("--install") == 4  # nothing listens at the mirror's address
    assert "--runtime FILE.tgz" in capsys.readouterr().err
    assert app("--runtime", tmp_path / "none.tgz") == 4
    assert app("--runtime", tmp_path / "run.tgz") == 0
    assert app("--output", tmp_path / "site") == 0


def test_a_port_in_use_ends_the_command(
    home: Path, app: Callable[..., int], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app("--no-browser", "--port", server.server_address[1]) == 2
    assert "is in use" in capsys.readouterr().err
    assert app("--port", 65536) == 2


SERVE = """
from pathlib import Path
from restore import zoo
from restore.app import runtime
from restore.cli import main
zoo.search.published_folder = lambda: Path(r"{models}")
runtime.installed = lambda folder: {{}}
main()
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_prints_its_address_and_serves_until_stopped(priors: list[Path], number: int, code: int) -> None:
    script = SERVE.format(models=priors[0].parent)
    command = [sys.executable, "-c", script, "app", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            with urllib.request.urlopen(f"{url}models.json", timeout=HANG) as answer:
                assert json.load(answer)["priors"]
            os.kill(process.pid, number)
            _, said = process.communicate(timeout=HANG)
        finally:
            process.kill()
    assert process.returncode == code and "Traceback" not in said
