"""The server of the local page: what it answers, to whom, and with which headers."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from waiting import HANG, wait_for

from restore.app import assembly
from restore.app.server import Server
from restore.errors import UsageError

SITE = Path(assembly.__file__).parent / "site"


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
