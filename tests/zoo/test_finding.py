"""Priors are found by name, folder or file, and one is chosen by the size of images."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from grey_priors import grey_prior
from stored import conditional_prior, prior_of

from restore import zoo
from restore.errors import ModelError
from restore.zoo import (
    WEIGHTS,
    TrainedPrior,
    candidates,
    describe,
    find,
    folders,
    save,
)

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Empty folders for published and for user-trained priors."""
    monkeypatch.setattr(zoo.search, "published_folder", lambda: tmp_path / "published")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "published", tmp_path / "home" / "restore" / "models"


def test_priors_are_found_by_name_folder_or_file(places: tuple[Path, Path], tmp_path: Path) -> None:
    published, own = places
    save(published / "one", prior_of("one"), "")
    save(published / "both", prior_of("both"), "")
    save(own / "both", prior_of("both"), "")
    save(own / "two", prior_of("two"), "")
    save(tmp_path / "elsewhere", prior_of("elsewhere"), "")
    (published / "no-prior").mkdir()
    assert [path.name for path in folders()] == ["both", "one", "two"]
    assert find("one") == published / "one"
    assert find("both") == published / "both"
    assert find("two") == own / "two"
    assert find(str(tmp_path / "elsewhere")) == tmp_path / "elsewhere"
    assert find(str(tmp_path / "elsewhere" / WEIGHTS)) == tmp_path / "elsewhere"


def test_no_folder_at_all(places: tuple[Path, Path]) -> None:
    assert list(folders()) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tap-mnst", "tap-mnst: there is no such model; did you mean tap-mnist"),
        ("zzz", "zzz: there is no such model; `restore models` lists them"),
        ("", "there is no such model"),
        ("no/such/folder", "no/such/folder: there is no such model"),
        ("a\nb", r"a\nb: there is no such model"),
        ("x" * 300, "there is no such model"),
        ("nul\0byte", "there is no such model"),
    ],
    ids=["38-near", "38-far", "38-empty", "38-path", "38-newline", "38-long", "38-nul"],
)
def test_unknown_models(name: str, says: str, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    save(places[0] / "tap-mnist", prior_of("tap-mnist"), "")
    monkeypatch.chdir(places[0])
    with pytest.raises(ModelError) as caught:
        find(name)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def considered(prior: TrainedPrior, place: int) -> TrainedPrior:
    """The prior with a place among those that `auto` considers."""
    return replace(prior, description=replace(prior.description, auto=place))


def test_auto_takes_the_prior_that_knows_the_size(places: tuple[Path, Path]) -> None:
    published, own = places
    with pytest.raises(ModelError, match=r"no prior knows images of 5x3 pixels; train one on images like them"):
        candidates((3, 5))
    # Where none knows the size, all are tried, in windows; but nothing is resized for one that was not asked for.
    for grey, name in ((False, "first"), (True, "grey")):
        save(published / name, considered(prior_of(name, (5, 7)), 1), "")
        if not grey:
            assert candidates((3, 5)) == (name,)
        with pytest.raises(ModelError, match=r"of 15x10 pixels; name the one to resize them for"):
            candidates((10, 15), grey, "resize")
        shutil.rmtree(published / name)
    save(own / "mine", prior_of("mine"), "")
    save(published / "square", prior_of("square", (4, 4)), "")
    assert candidates((3, 5)) == ("mine",)
    # Published variants of preferred priors are only taken by name.
    assert candidates((4, 4)) == ("mine",)
    # A conditional prior undoes one kind of damage, so it is only taken by name.
    save(own / "undo", conditional_prior("undo"), "")
    assert candidates((3, 5)) == ("mine",)
    save(published / "second", prior_of("second"), "")
    assert candidates((3, 5)) == ("mine",)
    for name, place in (("after", 2), ("before", 1)):
        save(published / name, considered(prior_of(name), place), "")
        assert name in candidates((3, 5))
    assert candidates((3, 5)) == ("before", "after", "mine")


def test_auto_never_compares_probabilities_with_densities(places: tuple[Path, Path]) -> None:
    _, own = places
    for name, prior in (("ink", prior_of("ink")), ("grey", grey_prior(shape=(3, 5)))):
        save(own / name, prior, "")
    assert candidates((3, 5)) == ("ink",)
    assert candidates((3, 5), grey=True) == ("grey",)


def test_published_priors_can_be_described() -> None:
    for path in zoo.published_folder().glob(f"*/{WEIGHTS}"):
        assert describe(path.parent).name == path.parent.name


def test_a_path_is_never_looked_for_among_the_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError):
        zoo.find("../models/tap-mnist")
