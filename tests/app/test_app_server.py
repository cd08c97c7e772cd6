"""The server: what it answers, to whom, and with which headers."""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_images import encoded
from PIL import Image
from priors import saved_prior
from processes import HANG, wait_for
from serving import PIXELS, address, ask, form, post, serving

import restore
from restore import zoo
from restore.app import assembly
from restore.app import server as server_module
from restore.app.answers import OPERATOR, Answers
from restore.app.server import Server
from restore.app.worker import Worker
from restore.errors import InputError, NotRestored, RestoreError, TooLarge, UsageError
from restore.images import bound
from restore.inference import open as opening
from restore.inference.options import Options
from restore.status import Status

ASSETS = Path(__file__).parents[2] / "assets"
SITE = assembly.PAGE

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
    assert answer.headers["Server"] == "restore"


PLACES = ("/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/models/told/weights.safetensors", "/train")
PLACES += ("//etc/passwd", "/index.html%00", "index.html", "http://localhost/index.html", "*")
# A name that somebody has pointed at this machine is not its own.
OTHERS = ("example.org:8000", "localhost.example.org", "", "::1")


@pytest.mark.parametrize(
    ("target", "method", "host", "status"),
    [
        *((target, "GET", "localhost", 404) for target in PLACES),
        *(("/", method, "localhost", 405) for method in ("PUT", "OPTIONS")),
        ("/denoise", "GET", "localhost", 405),
        *(("/models.json", "GET", host, 421) for host in OTHERS),
    ],
)
def test_anything_else_is_refused(server: Server, target: str, method: str, host: str | None, status: int) -> None:
    answer, content = ask(server, target, method, host=host)
    assert answer.status == status
    assert not any(secret in content for secret in (b"root:", b"solver.onnx", b"told"))
    check_headers(answer)


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:9000", "[::1]", "[::1]:8000"])
def test_head_sends_the_headers_alone_to_this_machine(server: Server, host: str) -> None:
    answer, content = ask(server, "/index.html?x=/../..", "HEAD", host=host)
    assert answer.status == 200 and content == b""
    assert int(answer.headers["Content-Length"]) == (SITE / "index.html").stat().st_size


def test_on_other_addresses_any_name_will_do(site: dict[str, bytes]) -> None:
    with serving(site, host="0.0.0.0") as running:
        assert ask(running, "/health", host="example.org")[0].status == 200


def test_one_connection_serves_many_requests(server: Server) -> None:
    connection = http.client.HTTPConnection(*address(server), timeout=HANG)
    for target, status in (("/", 200), ("/nothing", 404), ("/page.js", 200)):
        connection.request("GET", target)
        answer = connection.getresponse()
        assert answer.status == status
        answer.read()
    connection.close()


# ------------------------------------------------------------------------------------------------- what is posted


def content_of(name: str) -> bytes:
    return (ASSETS / name).read_bytes()


def pixels_of(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("L"))


JSON = {"Accept": "application/json"}


@pytest.mark.parametrize(
    ("told", "alone"),
    [
        ({}, True),
        ({"p": "auto", "model": "tap-mnist-25"}, False),
        ({"p": "0.1", "model": "tap-mnist"}, True),
        ({"p": "10%", "invert": "true", "soft": "true", "model": "tap-mnist-25"}, False),
    ],
    ids=str,
)
def test_a_picture_is_denoised_as_by_the_command(server: Server, told: dict[str, str], alone: bool) -> None:
    query = "&".join(f"{name}={value.replace('%', '%25')}" for name, value in told.items())
    noisy = content_of("digit-noisy.png")
    how: dict[str, Any] = {name: value == "true" if value == "true" else value for name, value in told.items()}
    clean, answer = restore.denoise(
        ASSETS / "digit-noisy.png", how.pop("model", "auto"), how.pop("p", None), return_solution=True, **how
    )
    wanted = np.asarray(clean.convert("L"))
    if alone:
        status, result, picture = post(server, f"/denoise?{query}", noisy)
    else:
        status, result, _ = post(server, f"/denoise?{query}", {"image": noisy}, **JSON)
        picture = base64.b64decode(result["image"])
        np.testing.assert_allclose(pixels_of(base64.b64decode(result["means"])), 255 * answer.means, atol=0.51)
        np.testing.assert_allclose(
            pixels_of(base64.b64decode(result["deviations"])), 510 * answer.deviations, atol=0.51
        )
    assert status == 200 and result["model"] == answer.model and result["iterations"] == answer.iterations
    np.testing.assert_array_equal(pixels_of(picture), wanted)
    assert result["status"] == Status(answer.status).name.lower()
    assert result["changed"] == answer.changed and set(answer.notes) <= set(result["notes"])
    if answer.level is not None:
        assert result[answer.level.name] == json.loads(json.dumps(answer.level.value))
        assert result["found"] == (answer.level.name if answer.level.estimated else None)


def test_a_hole_is_filled_as_by_the_command(server: Server) -> None:
    torn, hole = content_of("digit-torn.png"), pixels_of(content_of("digit-hole.png")) > 127
    status, _, picture = post(server, "/complete", {"image": torn, "mask": content_of("digit-hole.png")})
    assert status == 200
    np.testing.assert_array_equal(pixels_of(picture), restore.complete(pixels_of(torn), hole))
    np.testing.assert_array_equal(pixels_of(picture)[~hole], pixels_of(torn)[~hole])


def test_of_several_pages_each_has_its_mask(server: Server) -> None:
    torn, hole = pixels_of(content_of("digit-torn.png")), pixels_of(content_of("digit-hole.png"))
    one, other = (encoded(page, "TIFF") for page in (torn, hole))
    books = {"image": bound([other, one], "TIFF"), "mask": bound([one, other], "TIFF")}
    status, _, picture = post(server, "/complete?frame=1", books)
    assert status == 200
    np.testing.assert_array_equal(pixels_of(picture), restore.complete(torn, hole > 127))


def test_marks_are_found_as_by_the_library_and_counted(server: Server) -> None:
    page = content_of("page-rules.png")
    status, facts, mask = post(server, "/marks?remove=lines,dots", page)
    expected = restore.find_marks(pixels_of(page), "lines,dots")
    assert status == 200 and facts["marks"]["lines"]["words"] == f"{facts['marks']['lines']['count']} lines"
    assert set(facts["marks"]) == {"lines"} and expected["lines"].any() and not expected["dots"].any()
    np.testing.assert_array_equal(pixels_of(mask) == 255, expected["lines"])
    _, told, _ = post(server, "/marks?remove=lines", page, **JSON)
    assert told["marks"] == facts["marks"]
    np.testing.assert_array_equal(pixels_of(base64.b64decode(told["lines"])), pixels_of(mask))
    status, facts, mask = post(server, "/marks?specks=3", encoded(np.full((70, 70), 255, np.uint8)))
    assert status == 200 and facts["marks"] == {} and not pixels_of(mask).any()


def test_what_soft_writes_comes_beside_the_picture(server: Server) -> None:
    scan = encoded(pixels_of(content_of("page-scan.png"))[:100, :120])
    _, told, _ = post(server, "/denoise?p=scan", scan, **JSON)
    for soft, name in ((False, "image"), (True, "soft")):
        expected = restore.denoise(pixels_of(scan), p="scan", soft=soft)
        np.testing.assert_array_equal(pixels_of(base64.b64decode(told[name])), expected)


NOISE = np.random.default_rng(0).integers(0, 256, (40, 40), np.uint8)


def test_a_picture_that_is_not_sure_comes_back_as_it_came_and_with_strict_it_is_an_error(server: Server) -> None:
    status, result, _ = post(server, "/denoise", encoded(NOISE), **JSON)
    assert status == 200 and (result["outcome"], result["status"]) == ("not sure", "not_ink")
    assert result["reason"] == Status.NOT_INK.sentence and result["facts"]["two_tones"] < 0.84
    np.testing.assert_array_equal(pixels_of(base64.b64decode(result["image"])), NOISE)
    status, result, _ = post(server, "/denoise?strict=true", encoded(NOISE), **JSON)
    assert status == 422 and result["class"] == NotRestored.__name__ and "image" not in result
    assert post(server, "/denoise?model=conv-text&p=0.1", encoded(NOISE), **JSON)[0] == 200


DIGIT = content_of("digit.png")
BLANK = encoded(np.zeros((1, PIXELS + 1), np.uint8))


@pytest.mark.parametrize(
    ("target", "body", "status", "kind", "subject"),
    [
        ("/denoise", b"", 422, UsageError, ""),
        ("/denoise", {}, 422, UsageError, ""),
        ("/denoise", {"picture": DIGIT}, 422, UsageError, ""),
        ("/denoise", {"image": DIGIT, "mask": DIGIT}, 422, UsageError, ""),
        ("/complete", DIGIT, 422, UsageError, ""),
        ("/complete", {"image": DIGIT, "mask": content_of("page.png")}, 422, InputError, "mask"),
        ("/denoise", DIGIT[:40], 422, InputError, "image"),
        ("/denoise", {"image": b"Dear diary"}, 422, InputError, "image"),
        ("/denoise", BLANK, 413, TooLarge, "image"),
        ("/denoise", bytes(9 * PIXELS), 413, TooLarge, "the request"),
        ("/denoise", {"image": bytes(9 * PIXELS)}, 413, TooLarge, "the request"),
        ("/denoise?p=much", DIGIT, 422, UsageError, ""),
        ("/denoise?p=auto&sigma=auto", DIGIT, 422, UsageError, ""),
        ("/denoise?frame=-1", DIGIT, 422, UsageError, "frame"),
        ("/denoise?max_pixels=1000000000000", DIGIT, 422, UsageError, "max_pixels"),
        ("/denoise?device=cuda", DIGIT, 422, UsageError, "device"),
        ("/denoise?fit=perfectly", DIGIT, 422, UsageError, "fit"),
        ("/denoise?model=no-such-prior", DIGIT, 422, UsageError, "model"),
        (f"/denoise?model={ASSETS.parent}/models/tap-mnist", DIGIT, 422, UsageError, "model"),
    ],
    ids=lambda each: each.replace("/", "_") if isinstance(each, str) else type(each).__name__,
)
def test_what_cannot_be_restored_is_an_error_in_one_line(
    server: Server, target: str, body: Any, status: int, kind: type[RestoreError], subject: str
) -> None:
    found_status, result, _ = post(server, target, body)
    assert (found_status, result["class"], result["subject"]) == (status, kind.__name__, subject)
    assert "\n" not in result["error"] and "--" not in result["error"] and result["remedy"] in result["error"]


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=edge"])
def test_what_is_no_form_is_an_error(server: Server, kind: str) -> None:
    assert post(server, "/denoise", b"no form", Content_Type=kind)[0] == 400


@pytest.mark.parametrize("become", ["link", "pipe"])
def test_a_prior_that_becomes_something_else_is_not_followed(
    become: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = saved_prior(zoo.search.user_folder())
    weights, answers = folder / zoo.WEIGHTS, Answers(Options())
    kept = weights.rename(tmp_path / "elsewhere")
    if become == "pipe":
        os.mkfifo(weights)
    else:
        weights.symlink_to(kept)
    with pytest.raises(RestoreError):
        answers.answer(DIGIT, None, {"model": folder.name, "p": "0.1"}, lambda share: None)


def test_pages_of_others_cannot_post(server: Server) -> None:
    for origin, host, status in (
        ("http://example.org", "localhost", 403),
        ("null", "localhost", 403),
        ("http://localhost:81", "localhost", 403),
        ("http://localhost", "localhost", 422),
        ("http://example.org", "example.org", 421),
    ):
        answer, _ = ask(server, "/denoise", "POST", b"", host, Origin=origin)
        assert answer.status == status, origin
        check_headers(answer)


def ended(connection: socket.socket) -> bytes:
    """What comes on a connection until the other side ends it."""
    result = b""
    try:
        while part := connection.recv(2**16):
            result += part
    except ConnectionResetError:  # with some of what was sent unread
        pass
    return result


HEAD = "POST /denoise HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
SMUGGLED = "GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"{HEAD}Content-Length: 2\r\nContent-Length: 80\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.org\r\nConnection: close\r\n", 400),
        (f"{HEAD}Content-Length: {'9' * 5000}\r\n", 400),
        (f"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(SMUGGLED)}\r\n", 200),
        (f"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(SMUGGLED)}\r\n", 405),
    ],
)
def test_a_request_is_parsed_once(server: Server, head: str, status: int) -> None:
    """What follows a request that is refused or should have no content is not taken for another request."""
    with socket.create_connection(address(server), HANG) as connection:
        connection.sendall(f"{head}\r\n{SMUGGLED}".encode())
        connection.shutdown(socket.SHUT_WR)
        result = ended(connection)
    assert int(result.split()[1]) == status and result.count(b"HTTP/1.1 ") == 1


# ------------------------------------------------------------------------------------------------- many at a time


class Held:
    """In place of `answer`: it waits until it is let go, or nobody waits for it any more."""

    def __init__(self) -> None:
        self.running, self.ended, self.free = 0, list[str](), threading.Event()

    def __call__(self, image: bytes, mask: Any, wanted: Any, watch: Callable[[float], None], **how: Any) -> Any:
        self.running += 1
        try:
            while not self.free.wait(0.01):
                watch(0.5)
        except Exception as fault:
            self.ended.append(type(fault).__name__)
            raise
        self.ended.append("done")
        return {}, {"image": image}


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    held = Held()
    monkeypatch.setattr(Worker, "answer", held)
    yield held
    held.free.set()


@contextmanager
def asking(server: Server, count: int) -> Iterator[list[Any]]:
    """Post so many requests at once; their answers are there after the context."""
    answers: list[Any] = []
    with ThreadPoolExecutor(count) as pool:
        waiting = [pool.submit(ask, server, "/denoise", "POST", b"image") for _ in range(count)]
        yield answers
        answers += [each.result(HANG) for each in waiting]


def test_a_full_queue_says_come_again_and_still_tells_its_health(site: dict[str, bytes], held: Held) -> None:
    with serving(site, workers=1, queue=2) as running, asking(running, 3) as answers:
        wait_for(lambda: running.workers.inside == 3 and held.running == 1)
        refused, told = ask(running, "/denoise", "POST", b"image")
        assert refused.status == 503 and int(refused.headers["Retry-After"]) > 0 and json.loads(told)["error"]
        assert ask(running, "/health")[0].status == 200
        assert b"restore_requests 3.0" in ask(running, "/metrics")[1]
        held.free.set()
    assert [answer.status for answer, _ in answers] == [200] * 3 and running.workers.inside == 0


def test_what_runs_is_finished_before_the_end(site: dict[str, bytes], held: Held) -> None:
    with serving(site, workers=1, queue=2) as running, asking(running, 2) as answers:
        wait_for(lambda: running.workers.inside == 2)
        running.handle_exit(15, None)
        wait_for(lambda: not listens(running))
        held.free.set()
    assert [(answer.status, content) for answer, content in answers] == [(200, b"image")] * 2


def listens(server: Server) -> bool:
    try:
        socket.create_connection(address(server), HANG).close()
    except ConnectionRefusedError:
        return False
    return True


def test_nothing_is_restored_for_who_has_gone(server: Server, held: Held) -> None:
    with socket.create_connection(address(server), HANG) as connection:
        connection.sendall(f"{HEAD}Content-Length: 2\r\n\r\n{{}}".encode())
        wait_for(lambda: held.running == 1)
        time.sleep(0.2)
        assert held.ended == []
    wait_for(lambda: held.ended == ["Gone"] and server.workers.inside == 0)


def test_who_sends_too_slowly_gives_the_place_back(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SENDING", 0)
    with socket.create_connection(address(server), HANG) as connection:
        connection.sendall(f"{HEAD}Content-Length: 2\r\n\r\n{{".encode())
        assert connection.recv(2**16).split()[1] == b"408"
    assert server.workers.inside == 0


def test_who_has_gone_from_the_queue_gives_the_place_back(site: dict[str, bytes], held: Held) -> None:
    with serving(site, workers=1, queue=2) as running, asking(running, 1):
        wait_for(lambda: held.running == 1)
        waiting = [socket.create_connection(address(running), HANG) for _ in range(2)]
        for connection in waiting:
            connection.sendall(f"{HEAD}Content-Length: 2\r\n\r\n{{}}".encode())
        wait_for(lambda: running.workers.inside == 3)
        for connection in waiting:
            connection.close()
        began = time.monotonic()
        wait_for(lambda: running.workers.inside == 1)
        assert time.monotonic() - began < 1 and held.running == 1
        with asking(running, 2) as others:
            wait_for(lambda: running.workers.inside == 3)
            held.free.set()
    assert [answer.status for answer, _ in others] == [200] * 2


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [("/denoise", "localhost", 413), ("/denoise", "example.org", 421), ("/denoise?frame=-1", "localhost", 422)],
)
@pytest.mark.parametrize("how", ["Transfer-Encoding: chunked", f"Content-Length: {2**40}"])
def test_nothing_more_is_read_of_what_is_refused(
    target: str, host: str, status: int, how: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "LINGERING", 0.1)
    part = b"100000\r\n" + bytes(2**20) + b"\r\n"
    with socket.create_connection(address(server), HANG) as connection:
        connection.sendall(f"POST {target} HTTP/1.1\r\nHost: {host}\r\n{how}\r\n\r\n".encode())
        began = time.monotonic()
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while time.monotonic() - began < 10:
                connection.sendall(part)
    with socket.create_connection(address(server), HANG) as connection:
        connection.sendall(f"POST {target} HTTP/1.1\r\nHost: {host}\r\n{how}\r\n\r\n".encode())
        if "chunked" in how:
            for _ in range(8 * PIXELS // 2**20 + 2 if status == 413 else 1):
                connection.sendall(part)
        result = ended(connection)
        assert int(result.split()[1]) == status and b"connection: close" in result.lower()


@pytest.mark.parametrize("before", ["", "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"], ids=["first", "next"])
def test_headers_that_do_not_come_end_the_connection(
    before: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "HEADING", 0.5)
    with socket.create_connection(address(server), HANG) as connection:
        connection.sendall(f"{before}GET /health HTTP/1.1\r\nX: ".encode())
        began = time.monotonic()
        assert ended(connection).count(b"HTTP/1.1 200") == bool(before)
        assert 0.4 < time.monotonic() - began < 4  # uvicorn itself ends idle connections after 5 s


def test_a_slow_answer_does_not_end_the_connection(
    site: dict[str, bytes], held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "HEADING", 0.1)
    with serving(site, workers=1, queue=2) as running, asking(running, 1) as answers:
        wait_for(lambda: held.running == 1)
        time.sleep(0.3)
        held.free.set()
    assert answers[0][0].status == 200


@pytest.mark.parametrize("origin", ["http://[::1", "http://[", "http://]/", "//", "\xff"])
def test_a_malformed_origin_is_a_foreign_one(server: Server, origin: str) -> None:
    assert ask(server, "/denoise", "POST", b"", Origin=origin)[0].status == 403


def test_names_are_the_same_in_upper_case(server: Server) -> None:
    assert ask(server, "/health", host="LocalHost:8000")[0].status == 200
    assert ask(server, "/denoise", "POST", b"", host="LOCALHOST", Origin="HTTP://localHost")[0].status == 422
    body, kind = form(image=content_of("digit-noisy.png"))
    target = "/denoise?model=tap-mnist-25&p=0.1"
    answer, content = ask(
        server, target, "POST", body, Content_Type=kind.replace("multipart/form-data", "Multipart/Form-Data")
    )
    assert answer.status == 200 and pixels_of(content).shape
    answer, content = ask(server, target, "POST", DIGIT, Accept="Application/JSON")
    assert answer.status == 200 and json.loads(content)["image"]


def test_what_is_given_twice_is_refused(server: Server) -> None:
    status, result, _ = post(server, "/denoise?p=0.1&p=0.2", DIGIT)
    assert (status, result["class"], result["subject"]) == (422, UsageError.__name__, "p")
    body, kind = form(image=DIGIT)
    twice = body.removesuffix(b"--edge--\r\n") + body
    status, result, _ = post(server, "/denoise", twice, Content_Type=kind)
    assert (status, result["class"]) == (422, UsageError.__name__)


def test_a_prior_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def counted(name: str, *how: Any) -> Any:
        opened.append(name)
        return open_engine(name, *how)

    open_engine = opening.open_engine
    monkeypatch.setattr(opening, "open_engine", counted)
    answers = Answers(Options())
    for wanted in [{"model": "auto"}, {"model": "tap-mnist", "p": "0.1"}] * 2:
        answers.answer(content_of("digit-noisy.png"), None, wanted, lambda share: None)
    assert "tap-mnist" in opened and len(opened) == len(set(opened))


def test_figures_count_requests_by_task_and_status(site: dict[str, bytes]) -> None:
    with serving(site) as running:
        post(running, "/denoise?model=tap-mnist&p=0.1", DIGIT)
        for _ in range(2):
            post(running, "/complete", b"")
        told = ask(running, "/metrics")[1].decode()
    for task, status, count in (("denoise", 200, 1), ("complete", 422, 2)):
        assert f'restore_request_seconds_count{{status="{status}",task="{task}"}} {count}.0' in told
    assert "process_resident_memory_bytes" in told


# ------------------------------------------------------------------------------------------------- what is said of it


def test_the_schema_has_the_options_of_the_command(server: Server) -> None:
    schema = json.loads(ask(server, "/openapi.json")[1])
    wanted = {each.name: each.metadata["help"] for each in fields(Options) if each.metadata["panel"] != OPERATOR}
    assert {"model", "fit", "force", "invert", "soft", "strict", "remove", "specks"} == set(wanted)
    for path in ("/denoise", "/complete"):
        operation = schema["paths"][path]["post"]
        told = {each["name"]: each["description"] for each in operation["parameters"]}
        assert told.items() >= wanted.items() and told.keys() - wanted.keys() == {"p", "sigma", "frame"}
        assert {"200", "413", "422", "503", "504"} <= operation["responses"].keys()
        model = next(each for each in operation["parameters"] if each["name"] == "model")
        assert {"auto", "tap-mnist"} <= set(model["schema"]["enum"])
    finding = {each["name"] for each in schema["paths"]["/marks"]["post"]["parameters"]}
    assert finding == {"model", "invert", "remove", "specks", "frame"}


def test_its_page_names_every_option_and_needs_no_network(server: Server) -> None:
    answer, content = ask(server, "/docs")
    text = content.decode()
    check_headers(answer)
    assert "<script" not in text and "://" not in text
    schema = json.loads(ask(server, "/openapi.json")[1])
    for path, operations in schema["paths"].items():
        assert path in text
        for operation in operations.values():
            assert all(f"<dt>{each['name']}" in text for each in operation.get("parameters", ()))
