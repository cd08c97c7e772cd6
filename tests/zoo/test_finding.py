"""Priors are found by name, folder or file, and one is chosen by the size of images."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from exports import conditional_prior, prior_of, refused, rewritten

import restore
from restore import zoo
from restore.errors import ModelError, RestoreWarning, in_command, shown
from restore.zoo import CARD, WEIGHTS, TrainedPrior, candidates, find, folders, save

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


def test_an_installed_package_brings_priors(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by its entry point, after those here; its code is not run, and one that is broken is left out."""
    site = tmp_path / "site"
    for name in ("one", "theirs", "more/inner"):
        save(site / "brings" / name, prior_of("any"), "")
    (site / "brings" / "__init__.py").write_text("raise SystemExit\n")
    facts = site / "brings-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: brings\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[restore.priors]\nfirst = no_such.module\nsecond = brings\nthird = brings.more\n"
    )
    save(places[0] / "one", prior_of("one"), "")
    monkeypatch.syspath_prepend(site)
    zoo.search.installed_folders.cache_clear()
    try:
        with pytest.warns(RestoreWarning, match="package brings"):
            find("theirs")
        assert find("theirs") == site / "brings" / "theirs" and find("one") == places[0] / "one"
        assert list(folders()) == [places[0] / "one", site / "brings" / "theirs", site / "brings" / "more" / "inner"]
        assert zoo.search.is_published(find("theirs")) and not zoo.search.is_published(tmp_path / "theirs")
    finally:
        zoo.search.installed_folders.cache_clear()


def test_no_folder_at_all(places: tuple[Path, Path]) -> None:
    assert list(folders()) == []


@pytest.mark.parametrize("name", ["tap-mnst", "zzz", "", "no/such/folder", "a\nb", "x" * 300, "nul\0byte"])
def test_unknown_models(name: str, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    save(places[0] / "tap-mnist", prior_of("tap-mnist"), "")
    monkeypatch.chdir(places[0])
    said = refused(lambda: find(name))
    assert shown(name) in said
    # A name that is nearly right is named, and the remedy is one of Python or of the command.
    assert ("tap-mnist" in said) == (name == "tap-mnst")
    assert "`restore" not in said
    if name == "zzz":
        with in_command():
            assert "`restore models`" in refused(lambda: find(name))


def considered(prior: TrainedPrior, place: int = 1) -> TrainedPrior:
    """The prior with a place among those that `auto` considers."""
    return replace(prior, description=replace(prior.description, auto=place))


def test_auto_takes_the_priors_that_know_the_size(places: tuple[Path, Path]) -> None:
    published, own = places
    with pytest.raises(ModelError):
        candidates((3, 5))
    # Where none knows the size, all are tried, in windows; but nothing is resized for one that was not asked for.
    for grey, name in ((False, "first"), (True, "grey")):
        save(published / name, considered(prior_of(name, (5, 7))), "")
        if not grey:
            assert candidates((3, 5)) == (name,)
        with pytest.raises(ModelError):
            candidates((10, 15), grey, "resize")
        shutil.rmtree(published / name)
    # Without a place in its header a prior is only taken by name; and so is a conditional one.
    save(own / "unscored", prior_of("unscored"), "")
    save(published / "variant", prior_of("variant"), "")
    save(own / "undo", considered(conditional_prior("undo")), "")
    save(own / "mine", considered(prior_of("mine")), "")
    assert candidates((3, 5)) == ("mine",)
    for name, place in (("after", 2), ("before", 1)):
        save(published / name, considered(prior_of(name), place), "")
        assert name in candidates((3, 5))
    assert candidates((3, 5)) == ("before", "after", "mine")


@pytest.mark.parametrize("own_first", ["aaa", "zzz"])
def test_an_own_prior_never_pushes_out_published_ones(own_first: str, places: tuple[Path, Path]) -> None:
    published, own = places
    windows = replace(prior_of(), description=replace(prior_of().description, auto=2, overlap=2))
    save(published / "windows", windows, "")
    save(published / "native", considered(prior_of(shape=(9, 9))), "")
    for shape, suited in (((6, 8), ["windows"]), ((9, 9), ["native", "windows"])):
        before = candidates(shape)
        save(own / own_first, considered(prior_of(shape=shape)), "")
        assert candidates(shape) == (*before, own_first) and sorted(before) == suited
        shutil.rmtree(own)
    # Of its size there is one among others, so that there is nothing to resize; a size of windows is nobody's.
    assert "native" in candidates((9, 9), fit="resize")
    with pytest.raises(ModelError):
        candidates(windows.description.image_shape, fit="resize")
    save(own / own_first, considered(prior_of()), "")
    assert zoo.preferred() == "native"


def test_one_bad_prior_of_the_user_costs_one_warning(places: tuple[Path, Path]) -> None:
    published, own = places
    save(published / "good", considered(prior_of()), "")
    save(own / "bad", considered(prior_of()), "")
    (own / "bad" / WEIGHTS).write_bytes(b"no prior")
    zoo.leave_out.cache_clear()
    with pytest.warns(UserWarning) as told:
        for _ in range(3):
            assert candidates((3, 5)) == ("good",)
    assert len(told) == 1 and str(own / "bad") in str(told[0].message)


@pytest.mark.parametrize(
    "header", [{"image_shape": "[" * 4000}, {"hidden": "9" * 5000}, {"name": None}], ids=["deep", "digits", "nameless"]
)
def test_a_bad_header_gets_one_line_from_info_and_from_models(
    header: dict[str, str | None], places: tuple[Path, Path], run: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    _, own = places
    for name in ("bad", "good"):
        save(own / name, prior_of(name), f"# {name}\n")
    rewritten(own / "bad", **header)
    assert run("info", "bad") == ModelError.exit_code
    out, said = capfd.readouterr()
    assert not out and said.count("\n") == 1 and str(own / "bad" / WEIGHTS) in said
    assert run("models") == 0
    out, said = capfd.readouterr()
    assert "good" in out and "bad" not in out
    assert said.count("\n") == 1 and str(own / "bad" / WEIGHTS) in said
    assert run("info", "good") == 0
    assert capfd.readouterr().out == "# good\n"


def test_a_card_that_is_a_link_is_not_shown(
    places: tuple[Path, Path], run: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    _, own = places
    save(own / "mine", prior_of("mine"), "")
    for target in ("/dev/zero", own / "mine" / WEIGHTS):
        (own / "mine" / CARD).unlink()
        (own / "mine" / CARD).symlink_to(target)
        assert run("info", "mine") == ModelError.exit_code
        out, said = capfd.readouterr()
        assert not out and said.count("\n") == 1 and str(own / "mine" / CARD) in said


def test_a_path_is_never_looked_for_among_the_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError):
        zoo.find("../models/tap-mnist")


WORDS = "my-priors no_such_package json.tool : .. 1x os. no_such_package.inner:thing"
BROKEN = ["", "a b:c", *WORDS.split()]


# What its files hold: its own facts, and its entry points.
NAMED, POINTS = b"Metadata-Version: 2.1\nName: broken\nVersion: 1\n", "[restore.priors]\nbroken = {}\n"
PACKAGES = {target: (NAMED, POINTS.format(target).encode()) for target in BROKEN} | {
    "no facts": (None, POINTS.format("no_such").encode()),
    "no name": (b"\xff\0\n", POINTS.format("no_such").encode()),
    "no value": (NAMED, b"[restore.priors]\nbroken\n"),
    "no text": (NAMED, bytes(range(256))),
    "another's": (NAMED, b"[console_scripts]\nbroken\n"),
}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_broken_package_is_left_out_alone(
    package: str, tmp_path: Path, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = NAMED.replace(b"broken", b"sound"), POINTS.format("sound_priors.models").encode()
    for name, files in (("broken", PACKAGES[package]), ("sound", sound)):
        facts = tmp_path / f"{name}-1.dist-info"
        facts.mkdir()
        for file, content in zip(("METADATA", "entry_points.txt"), files, strict=True):
            if content is not None:
                (facts / file).write_bytes(content)
    folder = tmp_path / "sound_priors" / "models" / "theirs"
    save(folder, prior_of("theirs"), "")
    (tmp_path / "sound_priors" / "__init__.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    zoo.search.installed_folders.cache_clear()
    try:
        with pytest.warns(RestoreWarning, match="broken") as told:
            assert restore.list_models() == restore.list_models() == [folder.name]
        named = str(tmp_path) if PACKAGES[package][0] != NAMED else "broken"
        assert len(told) == 1 and f"package {'in ' * (named != 'broken')}{named}" in str(told[0].message)
    finally:
        zoo.search.installed_folders.cache_clear()
