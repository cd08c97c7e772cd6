"""Rows 35 and 36: levels of noise beyond single precision have the answer of the nearest within, without a warning."""

from __future__ import annotations

import functools
import math
import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import restore
from restore.errors import UsageError

GREY, BINARY = "tap-mnist-real", "tap-mnist-25"
IMAGES = np.random.default_rng(0).uniform(0, 1, (2, 28, 28))


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        # No prior explains noise.
        warnings.filterwarnings("ignore", "image 0 of 2, from 0: tap-mnist-real explains it no better")
        yield


@pytest.fixture(scope="module", params=["onnx", "torch"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def grey(engine: str) -> restore.Restorer:
    return restore.load(GREY, "cpu", engine=engine)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def answer(grey: restore.Restorer) -> Callable[[float], np.ndarray]:
    """What the grey prior makes of a level, each found once."""
    return functools.cache(lambda sigma: grey.denoise(IMAGES, sigma=sigma, force=True))


@pytest.fixture(scope="module")
def binary(engine: str) -> restore.Restorer:
    return restore.load(BINARY, "cpu", engine=engine)  # type: ignore[arg-type]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("extreme", "plain"),
    [(1e39, 1e38), (1e300, 1e38), (sys.float_info.max, 1e38), (5e-324, 1e-3), (1e-46, 1e-3), (1e-40, 1e-3)],
)
def test_row36_sigma(
    extreme: float, plain: float, grey: restore.Restorer, answer: Callable[[float], np.ndarray]
) -> None:
    expected = answer(plain)
    assert np.isfinite(expected).all()
    for given in (extreme, np.float64(extreme)):
        np.testing.assert_array_equal(grey.denoise(IMAGES, sigma=given, force=True), expected)


@pytest.mark.parametrize(
    ("extreme", "plain"), [(5e-324, 0.0), (1e-46, 0.0), (1e-40, 0.0), (1 - 1e-9, 1.0), (math.nextafter(1, 0), 1.0)]
)
def test_row35_p(extreme: float, plain: float, binary: restore.Restorer) -> None:
    found, solution = binary.denoise(IMAGES.round(), extreme, return_solution=True)
    expected, wanted = binary.denoise(IMAGES.round(), plain, return_solution=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(solution.means[0], wanted.means[0])
    np.testing.assert_array_equal(solution.evidence, wanted.evidence)


@pytest.mark.parametrize(
    "sigma", [10**400, math.inf, math.nan, 0, -1e-300], ids=["huge", "inf", "nan", "0", "negative"]
)
def test_row36_no_sigma(sigma: float, grey: restore.Restorer) -> None:
    with pytest.raises(UsageError, match="a finite number above 0"):
        grey.denoise(IMAGES, sigma=sigma)
