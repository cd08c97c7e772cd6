"""The local page in Chromium: what it shows, what it refuses, and that nothing leaves this machine."""

from __future__ import annotations

import functools
import http.server
import io
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from waiting import HANG

from restore import zoo
from restore.app import assembly, runtime
from restore.app.server import Server
from restore.errors import ModelError
from restore.images import shrink

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ASSETS = Path(__file__).parents[2] / "assets"
# The page has no tools for grey images. A prior without a graph is no reason to skip: the repository has them all.
PUBLISHED = [
    folder
    for folder in sorted(zoo.published_folder().iterdir())
    if (folder / zoo.GRAPH).exists() and not zoo.describe(folder).grey
]

if CHROMIUM is None:
    pytest.skip("chromium is not installed", allow_module_level=True)
try:
    FILES = runtime.installed(runtime.user_folder())
except ModelError as missing:
    pytest.skip(str(missing), allow_module_level=True)

expect = sync_api.expect

# In milliseconds.
PATIENCE = 1000 * HANG
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def site() -> assembly.Site:
    return assembly.collect(FILES, PUBLISHED)


@pytest.fixture(scope="module")
def url(site: assembly.Site) -> Iterator[str]:
    with Server(site, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET), timeout=PATIENCE)
        yield chromium
        chromium.close()


class Visit:
    """A page that has loaded its prior, every request it has made, and every complaint of the browser.

    With `broken`, the file of that name is something else, and the prior may not have been loaded.
    """

    def __init__(self, browser: Any, url: str, broken: str = "", **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.context.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("pageerror", lambda fault: self.complaints.append(str(fault)))
        if broken:
            self.context.route(f"**/{broken}", lambda route: route.fulfill(body="no such thing"))
        self.page.goto(url)
        if not broken:
            self.wait_for("is ready")

    def at(self, name: str) -> Any:
        return self.page.locator(f"#{name}")

    def wait_for(self, text: str | re.Pattern[str]) -> None:
        expect(self.at("status")).to_contain_text(text)

    def restore(self) -> str:
        """Press the button; the status once there is a result."""
        self.at("restore").click()
        self.wait_for(re.compile(r"\d ms\."))
        return str(self.at("status").inner_text())

    def refused(self) -> str:
        expect(self.at("message")).not_to_be_empty()
        return str(self.at("message").inner_text())

    def tick(self, name: str) -> None:
        self.page.get_by_role("radio", name=name, exact=True).check()

    def choose(self, name: str) -> None:
        self.at("prior").select_option(name)
        self.wait_for(f"{name} is ready")

    def shown(self, name: str, width: int = 28) -> np.ndarray:
        """What a canvas shows of an image that is so many pixels wide, near the left edge of each pixel, (H, W, 3)."""
        read = self.page.evaluate(
            """([name, count]) => {
                const canvas = document.getElementById(name);
                const side = canvas.width / count;
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const found = [];
                for (let y = Math.floor(side / 2); y < canvas.height; y += side) {
                    for (let x = Math.floor(side / 4); x < canvas.width; x += side) {
                        found.push(...data.slice(4 * (y * canvas.width + x), 4 * (y * canvas.width + x) + 3));
                    }
                }
                return found;
            }""",
            [name, width],
        )
        return np.array(read, np.uint8).reshape(-1, width, 3)

    def image(self) -> np.ndarray:
        """The image in the editor, (28, 28) levels."""
        return self.shown("image")[..., 0]

    def solve(self, prior: dict[str, Any], pixels: np.ndarray, p: float | str, mask: np.ndarray) -> dict[str, Any]:
        """What the page's own modules return for an image; NaN goes as a text."""
        asked = {"prior": prior, "pixels": pixels.ravel().tolist(), "p": p, "mask": mask.ravel().tolist()}
        return self.page.evaluate(
            """async ({ prior, pixels, p, mask }) => {
                const { Solver } = await import("/solver.js");
                globalThis.solver ??= new Solver();
                pixels = Float32Array.from(pixels, Number);
                const request = { pixels, p: Number(p), mask: Uint8Array.from(mask) };
                const result = await globalThis.solver.restore(prior, request);
                for (const name of ["restored", "means", "variances"]) result[name] = [...result[name]];
                return result;
            }""",
            asked,
        )


@pytest.fixture(scope="module")
def window(browser: Any, url: str) -> Iterator[Visit]:
    """A visit for `visit`: half of the time that one takes is the browser's own, for a window and its processes."""
    visit = Visit(browser, url)
    yield visit
    visit.context.close()


@pytest.fixture
def visit(window: Visit, url: str) -> Iterator[Visit]:
    """A page just loaded, of which the browser must have nothing to complain: no breach of the policy, no error."""
    # From elsewhere, so that nothing that was filled in is kept.
    window.page.goto("about:blank")
    window.page.goto(url)
    window.wait_for("is ready")
    yield window
    assert window.complaints == []


@pytest.fixture(scope="module")
def reader(browser: Any, url: str) -> Iterator[Visit]:
    """A visit for tests that only call the page's modules."""
    visit = Visit(browser, url)
    yield visit
    visit.context.close()


@pytest.fixture
def guest(reader: Visit) -> Iterator[Visit]:
    """As `visit`, for tests that leave no trace but an image, p and a result: with a digit open where others were."""
    upload(reader, "digit.png", (ASSETS / "digit.png").read_bytes())
    reader.wait_for("digit.png is open.")
    yield reader
    assert reader.complaints == []


def native(folder: Path, pixels: np.ndarray, p: float, mask: np.ndarray) -> dict[str, np.ndarray]:
    """The same graph run by onnxruntime outside the browser."""
    session = onnxruntime.InferenceSession(folder / zoo.GRAPH, providers=["CPUExecutionProvider"])
    inference = assembly.facts(folder)["inference"]
    inputs = {
        "image": pixels[None].astype(np.float32),
        "p": np.full((1, 1, 1), p, np.float32),
        "mask": mask[None].astype(bool),
        "max_iter": np.array(inference["max_iter"], np.int64),
        "tol": np.array(inference["tol"], np.float32),
        "damping": np.array(inference["damping"], np.float32),
    }
    wanted = {entry.name for entry in session.get_inputs()}
    names = [entry.name for entry in session.get_outputs()]
    outputs = session.run(names, {name: value for name, value in inputs.items() if name in wanted})
    return dict(zip(names, outputs, strict=True))


def noisy(seed: int = 0) -> np.ndarray:
    with Image.open(ASSETS / "digit.png") as image:
        ink = np.asarray(image.convert("L")) > 127
    return (ink ^ (np.random.default_rng(seed).random(ink.shape) < 0.1)).astype(float)


def png(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def upload(visit: Visit, name: str, content: bytes) -> None:
    visit.at("file").set_input_files({"name": name, "mimeType": "image/png", "buffer": content})


NOTHING = np.zeros((28, 28), bool)


# ------------------------------------------------------------------------------------------------------ restorations


def kinds() -> list[Path]:
    """A published prior for each kind of graph: those of one kind differ in their weights alone."""
    found: dict[object, Path] = {}
    for folder in [zoo.find(zoo.PREFERRED_BINARY), *PUBLISHED]:
        about = zoo.describe(folder)
        found.setdefault((about.family, about.inference.solver), folder)
    return list(found.values())


@pytest.mark.parametrize("folder", kinds(), ids=lambda folder: folder.name)
def test_the_result_is_that_of_the_native_runtime(reader: Visit, folder: Path) -> None:
    mask = NOTHING.copy()
    mask[8:18, 12:22] = True
    # Told of noise and a mask at once, the small priors may find no fixed point, and then rounding grows.
    both = [(0.2, mask)] if folder.name == zoo.PREFERRED_BINARY else []
    for p, hidden in ((0.1, NOTHING), (0.0, mask), *both):
        found = reader.solve(assembly.facts(folder), noisy(), p, hidden)
        expected = native(folder, noisy(), p, hidden)
        # Where a residual comes close to the tolerance, rounding may let one of the two take an iteration more.
        same = found["iterations"] == expected["iterations"][0]
        room = 1e-5 if same else 10 * assembly.facts(folder)["inference"]["tol"]
        assert abs(found["iterations"] - expected["iterations"][0]) <= 1
        for name in ("means", "variances"):
            np.testing.assert_allclose(found[name], expected[name].ravel(), atol=room, rtol=0)
        clear = np.abs(expected["means"].ravel() - 0.5) > room
        np.testing.assert_array_equal(np.array(found["restored"])[clear], expected["restored"].ravel()[clear])
        assert found["converged"] == bool(expected["converged"][0])


def test_restoring_shows_before_after_uncertainty_and_the_iterations(visit: Visit) -> None:
    before = visit.image() / 255
    said = visit.restore()
    expected = native(zoo.find(zoo.PREFERRED_BINARY), before, 0.1, NOTHING)
    counted = re.fullmatch(r"The solver converged: (\d+) iterations, residual \S+, \S+ ms\. \d+ pixels changed\.", said)
    assert counted and abs(int(counted[1]) - expected["iterations"][0]) <= 1
    np.testing.assert_array_equal(visit.shown("before")[..., 0], 255 * before)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * expected["restored"][0])
    changed = int((expected["restored"][0] != before).sum())
    assert f" {changed} pixels changed." in said
    # Lighter where the deviation is larger.
    lightness = visit.shown("uncertainty").astype(int).sum(-1)
    deviations = np.sqrt(expected["variances"][0])
    assert lightness[deviations > 0.4].min() > lightness[deviations < 0.1].max()
    visit.tick("Probability")
    np.testing.assert_allclose(visit.shown("after")[..., 0], 255 * expected["means"][0], atol=0.51)


def test_a_mask_is_painted_and_filled(visit: Visit) -> None:
    visit.at("example").click()
    visit.tick("Mask")
    visit.at("brush").fill("6")
    box = visit.at("image").bounding_box()
    visit.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"])
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.7 * box["height"], steps=5)
    visit.page.mouse.up()
    visit.at("p").fill("0")
    said = visit.restore()
    assert re.search(r" \d\d pixels filled, 0 changed\.", said)
    before, after = visit.shown("before"), visit.shown("after")
    to_fill = before[..., 2] != before[..., 0]
    with Image.open(ASSETS / "digit.png") as image:
        clean = np.asarray(image.convert("L"))
    assert 40 < to_fill.sum() < 100
    np.testing.assert_array_equal(after[~to_fill][:, 0], clean[~to_fill])
    np.testing.assert_array_equal(
        after[..., 0], 255 * native(zoo.find(zoo.PREFERRED_BINARY), clean / 255, 0, to_fill)["restored"][0]
    )
    visit.at("clear-mask").click()
    expect(visit.at("clear-mask")).to_be_disabled()
    visit.at("undo").click()
    expect(visit.at("clear-mask")).to_be_enabled()


def test_a_mask_over_everything_is_refused(visit: Visit) -> None:
    visit.tick("Mask")
    visit.at("brush").fill("8")
    box = visit.at("image").bounding_box()
    visit.page.mouse.move(box["x"] + 2, box["y"] + 2)
    visit.page.mouse.down()
    for row in range(0, 28, 3):
        for column in (0.01, 0.99):
            visit.page.mouse.move(box["x"] + column * box["width"], box["y"] + (row + 0.9) / 28 * box["height"])
    visit.page.mouse.up()
    visit.at("restore").click()
    assert "covers every pixel" in visit.refused()


def test_a_conditional_prior_asks_neither_p_nor_a_mask(visit: Visit) -> None:
    name = "crbm-bp-mnist-flip10"
    visit.tick("Mask")
    visit.choose(name)
    for control in ("p", "p-slider", "clear-mask"):
        expect(visit.at(control)).to_be_hidden()
    expect(visit.page.get_by_role("radio", name="Mask", exact=True)).to_be_hidden()
    expect(visit.page.get_by_role("radio", name="Draw")).to_be_checked()
    expect(visit.at("facts")).to_contain_text("Undoes 10 % inverted pixels, from the damaged image alone")
    before = visit.image() / 255
    visit.restore()
    expected = native(zoo.find(name), before, 0, NOTHING)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * expected["restored"][0])
    visit.choose(zoo.PREFERRED_BINARY)
    expect(visit.at("p")).to_be_visible()


def test_a_mask_is_kept_for_the_priors_that_are_told(visit: Visit) -> None:
    conditional = next(folder.name for folder in PUBLISHED if folder.name.startswith("crbm"))
    visit.tick("Mask")
    visit.at("image").click()
    masked = visit.shown("image")
    visit.choose(conditional)
    assert (visit.shown("image") != masked).any()
    visit.restore()
    assert "filled" not in visit.at("status").inner_text()
    visit.choose(zoo.PREFERRED_BINARY)
    np.testing.assert_array_equal(visit.shown("image"), masked)
    assert " filled" in visit.restore()


def test_inverted_images_are_noticed_and_inverted(visit: Visit) -> None:
    expected = native(zoo.find(zoo.PREFERRED_BINARY), 1 - noisy(), 0.1, NOTHING)
    upload(visit, "dark.png", png(Image.fromarray(np.uint8(255 * (1 - noisy())))))
    visit.wait_for("dark.png is open")
    visit.restore()
    if expected["inversion"][0] > 0.05:
        assert "looks inverted" in visit.refused()
    visit.at("invert").check()
    visit.restore()
    expect(visit.at("message")).to_be_empty()
    expected = native(zoo.find(zoo.PREFERRED_BINARY), noisy(), 0.1, NOTHING)
    np.testing.assert_array_equal(visit.shown("after")[..., 0], 255 * (1 - expected["restored"][0]))


def test_the_result_is_downloaded_as_it_is_shown(visit: Visit) -> None:
    expect(visit.at("download")).to_be_disabled()
    visit.restore()
    with visit.page.expect_download() as download:
        visit.at("download").click()
    assert download.value.suggested_filename == f"{zoo.PREFERRED_BINARY}.png"
    with Image.open(download.value.path()) as image:
        np.testing.assert_array_equal(np.asarray(image.convert("L")), visit.shown("after")[..., 0])


# --------------------------------------------------------------------------------------------------- where things go


def test_no_request_leaves_this_machine_and_it_works_offline(browser: Any, url: str) -> None:
    visit = Visit(browser, url)
    first = visit.restore()
    others = [folder.name for folder in PUBLISHED if folder.name != zoo.PREFERRED_BINARY]
    visit.choose(others[0])
    visit.restore()
    seen = len(visit.requests)
    visit.context.set_offline(True)
    visit.choose(zoo.PREFERRED_BINARY)
    visit.at("example").click()
    assert visit.restore() != first
    assert len(visit.requests) == seen, "what is loaded needs no server"
    visit.at("prior").select_option(others[1])
    assert f"{others[1]} cannot be used" in visit.refused()
    visit.choose(others[0])
    visit.restore()
    visit.context.set_offline(False)
    visit.choose(others[1])
    visit.restore()
    visit.context.close()
    # Requests of the worker are among them.
    assert any(request.endswith(f"{zoo.PREFERRED_BINARY}/{zoo.GRAPH}") for request in visit.requests)
    assert all(request.startswith((url, f"blob:{url}")) for request in visit.requests)


def test_the_written_site_works_below_any_address(browser: Any, site: assembly.Site, tmp_path: Path) -> None:
    assembly.write(site, tmp_path / "deep" / "page")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Handler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        visit = Visit(browser, f"http://127.0.0.1:{server.server_address[1]}/deep/page/")
        visit.restore()
        visit.context.close()
        server.shutdown()
    assert visit.complaints == []


# --------------------------------------------------------------------------------------------------------- bad input


def strip() -> bytes:
    return png(Image.new("L", (500, 3)))


def photo() -> bytes:
    return png(Image.new("1", (10_000, 6_000)))


def cut() -> bytes:
    return png(Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40), dtype=np.uint8)))[:300]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("photo.png", photo, r"photo\.png has 60 megapixels; the limit is 50"),
        ("notes.png", lambda: b"Dear diary", r"notes\.png is no PNG, JPEG, GIF, BMP or WebP image"),
        ("empty.png", lambda: b"", "is no PNG"),
        ("drawing.svg", lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is no PNG"),
        ("strip.png", strip, r"strip\.png has 500×3 pixels, and the prior restores 28×28"),
        ("header.png", lambda: photo()[:30], "60 megapixels"),
        ("torn.png", lambda: png(Image.new("L", (28, 28)))[:40], "damaged"),
        ("flat.bmp", lambda: b"BM" + bytes(50), "has no pixels"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value and "\\" not in value else "",
)
def test_files_that_are_no_use_are_refused(guest: Visit, name: str, content: Any, message: str) -> None:
    before = guest.image()
    upload(guest, name, content())
    assert re.search(message, guest.refused())
    np.testing.assert_array_equal(guest.image(), before)
    guest.restore()
    expect(guest.at("message")).to_be_empty()


@pytest.mark.parametrize("text", ["NaN", "", "much", "0.51", "-0.1", "Infinity", "1e"])
def test_a_p_that_is_no_probability_is_refused(guest: Visit, text: str) -> None:
    before = guest.shown("after")
    guest.at("p").fill(text)
    guest.at("restore").click()
    assert f"p must be a number from 0 to 0.5, not “{text}”" in guest.refused()
    expect(guest.at("p")).to_have_attribute("aria-invalid", "true")
    expect(guest.at("status")).to_have_text("digit.png is open.")
    np.testing.assert_array_equal(guest.shown("after"), before)
    guest.at("p").fill("0.2")
    guest.restore()


@pytest.mark.parametrize(("value", "p"), [("NaN", 0.1), ("Infinity", 0.1), (0.0, "NaN"), (0.0, -1.0)])
def test_nan_in_never_comes_out(reader: Visit, value: float | str, p: float | str) -> None:
    facts = assembly.facts(zoo.find(zoo.PREFERRED_BINARY))
    pixels = noisy().astype(object)
    pixels[3, 4] = value
    result = reader.solve(facts, pixels, p, NOTHING)
    assert result["converged"] is False and result["iterations"] == 0
    for name in ("restored", "means", "variances"):
        assert np.isfinite(np.array(result[name], float)).all()


def test_what_is_not_finite_is_never_shown(reader: Visit) -> None:
    said = reader.page.evaluate(
        """async () => {
            const { usable, report } = await import("/outcome.js");
            const fine = [Float32Array.of(0, 1)];
            const result = (changed) => ({ restored: [0, 1], means: [0.1, 0.9], variances: [0, 0], residual: 0.1,
                iterations: 3, converged: true, milliseconds: 1, ...changed });
            const outcomes = { converged: "the solver converged", max_iter: "", diverged: "the solver diverged" };
            const prior = { outcomes };
            return [{}, { means: [NaN, 0] }, { variances: [0, Infinity] }, { residual: Infinity, converged: false }]
                .map((changed) => [usable(result(changed)), report(prior, result(changed))]);
        }"""
    )
    assert [ok for ok, _ in said] == [True, False, False, False]
    assert all(text.startswith("The solver diverged") and "NaN," not in text for _, text in said[1:])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("models.json", "The page could not start"),
        (f"{zoo.PREFERRED_BINARY}/solver.onnx", f"{zoo.PREFERRED_BINARY} cannot be used"),
        (f"{zoo.PREFERRED_BINARY}/weights.safetensors", f"{zoo.PREFERRED_BINARY} cannot be used"),
        ("ort/*.wasm", f"{zoo.PREFERRED_BINARY} cannot be used"),
        ("ort/*.mjs", f"{zoo.PREFERRED_BINARY} cannot be used"),
    ],
)
def test_a_site_with_damaged_files_says_so(browser: Any, url: str, broken: str, message: str) -> None:
    visit = Visit(browser, url, broken)
    assert message in visit.refused()
    visit.at("image").click()
    if broken == "models.json":
        expect(visit.at("restore")).to_be_disabled()
    else:
        visit.at("restore").click()
    assert not visit.shown("after", visit.at("after").evaluate("each => each.width"))[..., 0].any()
    visit.context.close()


# ---------------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("GIF", {}),
        ("BMP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"quality": 90}),
        ("WEBP", {"lossless": True, "exif": b"Exif\0\0"}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True, "icc_profile": bytes(100_000)}),
    ],
)
@pytest.mark.parametrize("size", [(28, 30), (300, 271), (1, 1)])
def test_sizes_are_read_from_headers(reader: Visit, kind: str, options: dict[str, Any], size: tuple[int, int]) -> None:
    head = png(Image.new("RGB", size, (9, 9, 9)), kind, **options)
    stated = reader.page.evaluate(
        'async head => (await import("/sizes.js")).statedSize(Uint8Array.from(head))', list(head)
    )
    assert (stated["width"], stated["height"]) == size


@pytest.mark.parametrize("shape", [(28, 28), (56, 56), (40, 33), (9, 7), (1, 1)])
def test_pictures_are_averaged_as_on_the_command_line(reader: Visit, shape: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).random(shape)
    found = reader.page.evaluate(
        """async ([pixels, height, width]) =>
            [...(await import("/picture.js")).resize(Float32Array.from(pixels), width, height, 28, 28)]""",
        [pixels.ravel().tolist(), *shape],
    )
    np.testing.assert_allclose(found, shrink(pixels, None, (28, 28))[0].ravel(), atol=1e-6)


@pytest.mark.parametrize("way", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(guest: Visit, way: str) -> None:
    give(guest, way, (ASSETS / "digit-large.png").read_bytes())
    guest.wait_for("given.png: 56×56 pixels, averaged to 28×28.")
    with Image.open(ASSETS / "digit-large.png") as image:
        expected = shrink(np.asarray(image.convert("L")) / 255, None, (28, 28))[0]
    np.testing.assert_allclose(guest.image(), 255 * expected, atol=0.51)


def test_row73_a_picture_far_larger_than_the_prior_is_warned_of(guest: Visit) -> None:
    for side, warned in ((57, True), (56, False), (13, True), (14, False)):
        upload(guest, "page.png", png(Image.new("L", (side, side))))
        guest.wait_for(f"page.png: {side}×{side} pixels, averaged to 28×28.")
        # Both are said at once.
        assert ("Little is left of page.png" in guest.at("message").inner_text()) == warned


def test_a_drop_that_is_no_file_is_refused(guest: Visit) -> None:
    give(guest, "drop", None)
    assert "is no file" in guest.refused()


def give(visit: Visit, way: str, content: bytes | None) -> None:
    """Drop on the page, or paste into it, a file (None: a text)."""
    visit.page.evaluate(
        """([way, content]) => {
            const data = new DataTransfer();
            if (content) data.items.add(new File([Uint8Array.from(content)], "given.png"));
            else data.setData("text/plain", "hello");
            const options = { bubbles: true, cancelable: true };
            document.body.dispatchEvent(way === "drop"
                ? new DragEvent("drop", { ...options, dataTransfer: data })
                : new ClipboardEvent("paste", { ...options, clipboardData: data }));
        }""",
        [way, None if content is None else list(content)],
    )


def test_colour_becomes_grey_and_transparency_the_ground(guest: Visit) -> None:
    picture = Image.new("RGBA", (28, 28), (255, 0, 0, 255))
    picture.paste((255, 255, 255, 0), (0, 0, 14, 28))
    upload(guest, "red.png", png(picture))
    guest.wait_for("red.png is open")
    np.testing.assert_array_equal(guest.image()[0, [0, 27]], [0, 76])


def test_the_same_seed_damages_alike(reader: Visit) -> None:
    found = reader.page.evaluate(
        """async () => {
            const { flips, patch, generator } = await import("/damage.js");
            const zero = new Float32Array(28 * 28);
            return [flips(0.3), flips(0.3), patch(12, 1), flips(0)].map((damage, i) =>
                [...damage.apply(zero, 28, 28, generator(i === 1 ? 1 : 5))]);
        }"""
    )
    flipped, others, patched, none = (np.array(pixels).reshape(28, 28) for pixels in found)
    assert 0.2 < flipped.mean() < 0.4 and (flipped != others).any() and not none.any()
    rows, columns = np.nonzero(patched)
    assert len(rows) == 144 and np.ptp(rows) == np.ptp(columns) == 11


# ---------------------------------------------------------------------------------------------------------- everyone


def test_all_of_it_works_by_keyboard(visit: Visit) -> None:
    keys = visit.page.keyboard
    named = """each => each.type === "radio" ? each.name : each.id || each.tagName"""
    controls = visit.page.locator("button, select, input, canvas[tabindex], summary, a")
    usable = """each => !each.disabled && !each.closest("[hidden]")"""
    wanted = {each.evaluate(named) for each in controls.all() if each.evaluate(usable)}
    reached = set()
    for _ in range(len(wanted) + 3):
        keys.press("Tab")
        focused = visit.page.locator(":focus")
        if focused.count():  # else it is the browser's turn
            assert focused.evaluate('each => each.matches(":focus-visible")')
            reached.add(focused.evaluate(named))
    assert wanted <= reached
    visit.page.reload()
    visit.wait_for("is ready")
    keys.press("Tab")
    keys.press("Enter")  # skip to the image
    while visit.page.evaluate("document.activeElement.id") != "image":
        keys.press("Tab")
    before = visit.image()
    keys.press("e")
    expect(visit.page.get_by_role("radio", name="Erase")).to_be_checked()
    for key in ("[", "ArrowDown", "Space", "Shift+ArrowRight", "Shift+ArrowRight"):
        keys.press(key)
    expect(visit.at("cursor")).to_have_text("Row 16, column 17, black")
    keys.press("m")
    for key in ("ArrowDown", "Space"):
        keys.press(key)
    expect(visit.at("cursor")).to_have_text("Row 17, column 17, masked")
    keys.press("Enter")
    visit.wait_for(re.compile(r"1 pixel filled, \d+ changed\."))
    shown = visit.shown("before")
    assert not shown[15, 14:17].any() and tuple(shown[16, 16]) == (59, 111, 181)
    unchanged = np.ones((28, 28), bool)
    unchanged[15, 14:17] = unchanged[16, 16] = False
    np.testing.assert_array_equal(shown[unchanged][:, 0], before[unchanged])
    for _ in range(4):
        keys.press("Control+z")
    keys.press("Control+Enter")
    visit.wait_for(re.compile(r"ms\. \d+ pixels changed\."))
    np.testing.assert_array_equal(visit.shown("before")[..., 0], before)


def test_every_control_has_a_name(guest: Visit) -> None:
    session = guest.context.new_cdp_session(guest.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "slider", "radio", "checkbox", "combobox", "image", "img", "application", "link"}
    found = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert len(found) > 15 and all(name for _, name in found), found
    assert guest.page.locator("[role=status], [role=alert], [aria-live]").count() == 3
    assert guest.page.locator("html[lang]").count() == 1


def test_it_fits_a_phone_in_either_scheme(browser: Any, url: str) -> None:
    visit = Visit(browser, url, viewport={"width": 360, "height": 740})
    visit.restore()
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
        assert visit.at("image").bounding_box()["width"] >= 280
        ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark")
    visit.context.close()
    assert visit.complaints == []
