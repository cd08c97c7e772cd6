"""Requests that schemathesis makes of the schema: no answer is a fault of the server, or one that is not stated."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from processes import HANG
from serving import ask, serving

from restore.app.server import Server

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

pytestmark = pytest.mark.thorough


def png(height: int, width: int, seed: int) -> bytes:
    """A random picture."""
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 2, (height, width), np.uint8) * 255).save(stream, "PNG")
    return stream.getvalue()


SIDE = st.integers(1, 12)
PICTURES = st.builds(png, SIDE, SIDE, st.integers(0, 9))

schemathesis.openapi.format("binary", PICTURES)
schemathesis.openapi.media_type("application/octet-stream", PICTURES)

# What the schema cannot say: which texts are noise levels, and which priors take no time.
NARROWER = {"p": ["0.1", "10%,5%", "auto"], "model": ["auto", "tap-mnist-25"], "force": [True], "remove": ["lines"]}

# And that a picture may be refused.
UNSAID = [schemathesis.checks.positive_data_acceptance]


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with serving({}, workers=1, queue=8) as server:
        yield server


def checked(running: Server, path: str, mode: Any, narrower: dict[str, list[Any]]) -> set[int]:
    """The statuses of many requests, each of which must be answered as the schema says."""
    raw = json.loads(ask(running, "/openapi.json")[1])
    (told,) = raw["paths"][path].values()
    for parameter in told.get("parameters", ()) if narrower else ():
        if parameter["name"] in narrower:
            parameter["schema"] = {"enum": narrower[parameter["name"]]}
    told["parameters"] = [each for each in told.get("parameters", ()) if each["name"] != "sigma" or not narrower]
    known = schemathesis.openapi.from_dict(raw)
    known.config.update(base_url=running.url)
    statuses = set()

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(*[operation.as_strategy(generation_mode=mode) for operation in known[path].values()])
    def check(case: Any) -> None:
        statuses.add(case.call_and_validate(excluded_checks=UNSAID, timeout=HANG).status_code)

    check()
    return statuses


POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


@pytest.mark.parametrize("path", ["/health", "/metrics", "/denoise", "/complete", "/marks"])
def test_requests_that_the_schema_allows_are_answered_as_it_states(running: Server, path: str) -> None:
    assert max(checked(running, path, POSITIVE, {})) < 500
    assert (
        200 in checked(running, path, POSITIVE, NARROWER) or path == "/complete"
    )  # which refuses masks of other sizes


@pytest.mark.parametrize("path", ["/denoise", "/complete", "/marks"])
def test_other_requests_are_refused(running: Server, path: str) -> None:
    statuses = checked(running, path, NEGATIVE, {})
    assert statuses and all(400 <= status < 500 for status in statuses)
