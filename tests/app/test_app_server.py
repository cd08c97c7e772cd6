"""The server of the local page: what it answers, to whom, and with which headers."""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from priors import saved_prior
from waiting import HANG, wait_for

import restore
from restore import zoo
from restore.app import assembly
from restore.app.answers import BYTES, Answers
from restore.app.server import Server
from restore.errors import RestoreError
from restore.marginals import Status

ASSETS = Path(__file__).parents[2] / "assets"
SITE = assembly.PAGE


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
}


@pytest.mark.parametrize("target", TYPES)
def test_every_file_has_its_type_and_the_headers(server: Server, site: dict[str, bytes], target: str) -> None:
    answer, content = ask(server, target)
    assert answer.status == 200 and answer.version == 11
    assert content == site[target[1:] or "index.html"]
    assert answer.headers["Content-Type"] == TYPES[target]
    assert int(answer.headers["Content-Length"]) == len(content)
    check_headers(answer)


def check_headers(answer: http.client.HTTPResponse) -> None:
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["connect-src"] == "'self'"
    assert policy["script-src"] == "'self'" and "unsafe" not in str(policy)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "Python" not in answer.headers["Server"]


PLACES = ("/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/models/told/weights.safetensors", "/denoise")
PLACES += ("//etc/passwd", "/index.html%00", "index.html", "http://localhost/index.html", "*")
# A name that somebody has pointed at this machine is not its own.
OTHERS = ("example.org:8000", "localhost.example.org", "", "::1", None)


@pytest.mark.parametrize(
    ("target", "method", "host", "status"),
    [
        *((target, "GET", "localhost", 404) for target in PLACES),
        *(("/", method, "localhost", 501) for method in ("PUT", "OPTIONS")),
        *(("/models.json", "GET", host, 421) for host in OTHERS),
    ],
)
def test_anything_else_is_refused(server: Server, target: str, method: str, host: str | None, status: int) -> None:
    answer, content = ask(server, target, method, host)
    assert answer.status == status
    assert not any(secret in content for secret in (b"root:", b"solver.onnx", b"told"))
    check_headers(answer)


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:9000"])
def test_head_sends_the_headers_alone_to_this_machine(server: Server, host: str) -> None:
    assert server.server_address[0] == "127.0.0.1"
    answer, content = ask(server, "/index.html?x=/../..", "HEAD", host)
    assert answer.status == 200 and content == b""
    assert int(answer.headers["Content-Length"]) == (SITE / "index.html").stat().st_size


def test_a_browser_that_hangs_up_is_no_fault(capfd: pytest.CaptureFixture[str]) -> None:
    with Server({"large.js": bytes(50_000_000)}, Answers([]), 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        with socket.create_connection(running.server_address, 10) as connection:
            connection.sendall(b"GET /large.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
            connection.recv(1000)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Each answer has a thread of its own, and one that is given up ends without a word.
        wait_for(lambda: not any("process_request" in thread.name for thread in threading.enumerate()))
        running.shutdown()
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------------------- what is posted


def base64_of(name: str) -> str:
    return base64.b64encode((ASSETS / name).read_bytes()).decode()


def post(server: Server, target: str, asked: Any, **headers: str) -> tuple[int, Any]:
    """The status, and the answer if it is JSON."""
    content = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    connection = http.client.HTTPConnection(*server.server_address, timeout=HANG)
    connection.request("POST", target, content, {"Content-Type": "application/json", "Host": "localhost"} | headers)
    answer = connection.getresponse()
    found = answer.read()
    check_headers(answer)
    connection.close()
    return answer.status, json.loads(found) if answer.headers["Content-Type"] == "application/json" else None


def pixels_of(text: str) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(text))) as image:
        return np.asarray(image.convert("L"))


def as_array(name: str) -> np.ndarray:
    return pixels_of(base64_of(name))


@pytest.mark.parametrize("told", [{}, {"p": "auto"}, {"p": 0.1, "model": "tap-mnist"}, {"p": 0.1, "invert": True}])
def test_a_picture_is_denoised_as_by_the_command(server: Server, told: dict[str, Any]) -> None:
    status, found = post(server, "/denoise", {"image": base64_of("digit-noisy.png"), **told})
    how = dict(told)
    clean, answer = restore.denoise(
        ASSETS / "digit-noisy.png", how.pop("model", "auto"), how.pop("p", None), return_solution=True, **how
    )
    assert status == 200 and found["model"] == answer.model and found["iterations"] == answer.iterations
    np.testing.assert_array_equal(pixels_of(found["image"]), np.asarray(clean.convert("L")))
    np.testing.assert_allclose(pixels_of(found["means"]), 255 * answer.means, atol=0.51)
    np.testing.assert_allclose(pixels_of(found["deviations"]), 510 * answer.deviations, atol=0.51)
    assert found["changed"] == answer.changed and set(answer.notes) <= set(found["notes"])


def test_a_hole_is_filled_as_by_the_command(server: Server) -> None:
    status, found = post(
        server, "/complete", {"image": base64_of("digit-torn.png"), "mask": base64_of("digit-hole.png")}
    )
    hole = as_array("digit-hole.png") > 127
    whole = restore.complete(as_array("digit-torn.png"), hole)
    assert status == 200
    np.testing.assert_array_equal(pixels_of(found["image"]), whole)
    np.testing.assert_array_equal(pixels_of(found["image"])[~hole], as_array("digit-torn.png")[~hole])


def test_a_picture_that_is_refused_comes_with_a_sentence(server: Server) -> None:
    grey = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40), np.uint8))
    stream = io.BytesIO()
    grey.save(stream, "PNG")
    status, found = post(server, "/denoise", {"image": base64.b64encode(stream.getvalue()).decode()})
    assert status == 200 and found["refused"] == Status.NOT_INK.sentence and "image" not in found


@pytest.mark.parametrize(
    "asked",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        {},
        {"image": "no base64"},
        {"image": base64_of("digit.png")[:40]},
        {"image": base64_of("digit.png"), "p": "much"},
        {"image": base64_of("digit.png"), "p": [0.1]},
        {"image": base64_of("digit.png"), "max_pixels": 10**12},
        {"image": base64_of("digit.png"), "model": str(ASSETS.parent / "models" / "tap-mnist")},
        {"image": base64_of("digit.png"), "mask": base64_of("digit-hole.png")},
    ],
    ids=lambda asked: str(asked)[:50].replace("/", "_"),
)
def test_what_cannot_be_restored_is_an_error_in_one_line(server: Server, asked: Any) -> None:
    status, found = post(server, "/denoise", asked)
    assert status == 422 and list(found) == ["error"] and "\n" not in found["error"]


@pytest.mark.parametrize("become", ["link", "pipe"])
def test_a_prior_that_becomes_something_else_is_not_followed(
    become: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zoo.search, "user_folder", lambda: tmp_path)
    folder = saved_prior(tmp_path)
    weights, answers = folder / zoo.WEIGHTS, Answers([folder.name])
    kept = weights.rename(tmp_path / "elsewhere")
    if become == "pipe":
        os.mkfifo(weights)
    else:
        weights.symlink_to(kept)
    request = json.dumps({"image": base64_of("digit.png"), "model": folder.name, "p": 0.1}).encode()
    with pytest.raises(RestoreError):
        answers.answer(request, complete=False, watch=lambda share: None)


def test_a_mask_of_another_size_or_none_is_an_error(server: Server) -> None:
    image = base64_of("digit.png")
    for more in ({}, {"mask": base64_of("page.png")}):
        assert post(server, "/complete", {"image": image, **more})[0] == 422


def test_pages_of_others_cannot_post(server: Server) -> None:
    asked = {"image": base64_of("digit.png")}
    assert post(server, "/denoise", asked, Host="example.org")[0] == 421
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert post(server, "/denoise", asked, **{"Content-Type": kind})[0] == 415
    assert post(server, "/train", asked)[0] == 404


HEAD = "POST /denoise HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SMUGGLED = "GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (HEAD, 411),
        (f"{HEAD}Content-Length: 2\r\nContent-Length: 80\r\n", 411),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.org\r\nConnection: close\r\n", 421),
        (f"{HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", 411),
        (f"{HEAD}Content-Length: {BYTES + 1}\r\n", 413),
        (f"{HEAD}Content-Length: {'9' * 5000}\r\n", 411),
        (f"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(SMUGGLED)}\r\n", 200),
        (f"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(SMUGGLED)}\r\n", 501),
    ],
)
def test_a_request_is_parsed_once(server: Server, head: str, status: int) -> None:
    """What follows a request that is refused or should have no content is not taken for another request."""
    with socket.create_connection(server.server_address, HANG) as connection:
        connection.sendall(f"{head}\r\n{SMUGGLED}".encode())
        connection.shutdown(socket.SHUT_WR)
        found = b""
        try:
            while part := connection.recv(2**16):
                found += part
        except ConnectionResetError:  # closed with some of it unread
            pass
    assert int(found.split()[1]) == status and found.count(b"HTTP/1.1 ") == 1


def test_nothing_is_restored_for_who_has_gone(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def answer(content: bytes, *, complete: bool, watch: Callable[[float], None]) -> dict[str, Any]:
        seen.append("asked")
        wait_for(lambda: gone(watch))
        seen.append("gone")
        return {}

    def gone(watch: Callable[[float], None]) -> bool:
        try:
            watch(0.5)
        except ConnectionError:
            return True
        return False

    monkeypatch.setattr(server.answers, "answer", answer)
    with socket.create_connection(server.server_address, HANG) as connection:
        connection.sendall(f"{HEAD}Content-Length: 2\r\n\r\n{{}}".encode())
        wait_for(lambda: bool(seen))
        time.sleep(0.2)
        assert seen == ["asked"]
    wait_for(lambda: seen == ["asked", "gone"])
