"""The package needs no C compiler and nothing that Windows lacks: what only POSIX has is hidden from it, and it works.

The processes here hide it from the modules of restore alone, as other libraries know where they run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from processes import HANG

import restore

ASSETS = Path(__file__).parent.parent / "assets"
PACKAGE = Path(restore.__file__).parent

# Before anything else: modules that Windows lacks cannot be imported by restore, and names that `os`, `signal` and
# `socket` lack there are missing for it. What other libraries do is their own matter.
HIDE = """
import builtins, os, signal, socket, sys

MODULES = "crypt fcntl grp nis posix pty pwd resource readline spwd syslog termios tty".split()
NAMES = {
    os: "chroot confstr fchmod fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getpgrp "
    "getpriority getresuid getsid getuid killpg lchown mkfifo mknod nice openpty posix_fadvise posix_fallocate "
    "posix_spawn pread preadv pwrite pwritev sched_getaffinity sched_setaffinity sched_yield sendfile setgid setpgid "
    "setsid setuid statvfs sync sysconf sysconf_names tcgetpgrp ttyname uname wait wait3 wait4 waitid chown environb "
    "O_CLOEXEC O_DIRECTORY O_DSYNC O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC "
    "WNOHANG WIFEXITED WEXITSTATUS SCHED_OTHER".split(),
    signal: "SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 SIGXCPU "
    "SIGXFSZ alarm getitimer pause pthread_kill pthread_sigmask setitimer sigpending sigwait siginterrupt".split(),
    socket: "AF_UNIX socketpair".split(),
}
ours = lambda name: (name or "").partition(".")[0] in ("restore", "__main__")

def hide(module, names):
    kept = {name: module.__dict__.pop(name) for name in names if name in module.__dict__}
    def missing(name):
        if name in kept and not ours(sys._getframe(1).f_globals.get("__name__")):
            return kept[name]
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r} on Windows")
    module.__getattr__ = missing

real = builtins.__import__
def guarded(name, globals=None, locals=None, fromlist=(), level=0):
    if name in MODULES and ours((globals or {}).get("__name__")):
        raise ModuleNotFoundError(f"no module named {name!r} on Windows", name=name)
    return real(name, globals, locals, fromlist, level)

builtins.__import__ = guarded
for module, names in NAMES.items():
    hide(module, names)
"""

EVERYTHING = """
import importlib, pkgutil, restore
failed = []
names = [found.name for found in pkgutil.walk_packages(restore.__path__, "restore.")]
names.remove("restore.__main__")
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as fault:
        if fault.name.partition(".")[0] not in OPTIONAL:
            failed.append((name, repr(fault)))
    except Exception as fault:
        failed.append((name, repr(fault)))
assert len(names) > 200 and not failed, failed
"""

RUN = """
from restore.cli import main
try:
    main()
except SystemExit as ended:
    sys.exit(ended.code)
"""


def elsewhere(code: str, *arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process without POSIX, programs to be found, and an encoding that is not named."""
    (where / "programs").mkdir(exist_ok=True)
    environment = os.environ | {"PATH": str(where / "programs"), "CC": "none", "XDG_CACHE_HOME": str(where / "cache")}
    environment["RESTORE_DEBUG"] = "1"
    words = [sys.executable, "-X", "warn_default_encoding", "-c", HIDE + ENCODINGS + code, *arguments]
    return subprocess.run(words, cwd=where, env=environment, capture_output=True, text=True, timeout=HANG)


# A file opened by restore in the locale's encoding is an error.
ENCODINGS = """
import warnings
warnings.filterwarnings("error", category=EncodingWarning, module=r"restore(\\.|$)")
"""


@pytest.mark.thorough
def test_every_module_is_imported_without_posix(tmp_path: Path) -> None:
    optional = 'OPTIONAL = {"pypdfium2", "pikepdf", "sklearn", "ocrmypdf", "triton", "fastapi", "uvicorn"}\n'
    done = elsewhere(optional + EVERYTHING, where=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("denoise", ("digit-noisy.png", "--model", "tap-mnist", "--p", "0.1")),
        pytest.param("denoise", ("page-noisy.png",), marks=pytest.mark.thorough),
        pytest.param("complete", ("digit-torn.png", "--mask", "digit-hole.png"), marks=pytest.mark.thorough),
        pytest.param(
            "denoise",
            ("digit-noisy.png", "--model", "crbm-bp-mnist-flip10", "--engine", "torch"),
            marks=pytest.mark.thorough,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_the_main_job_gives_the_same_bits_without_posix(command: str, words: tuple[str, ...], tmp_path: Path) -> None:
    """Without a compiler belief propagation iterates in torch, which may round otherwise: its picture is the same."""
    files = [word for word in words if word.endswith(".png")]
    for file in files:
        shutil.copy(ASSETS / file, tmp_path)
    done = elsewhere(RUN, command, *words, "-o", "there.png", where=tmp_path)
    assert done.returncode == 0, done.stderr
    here = [sys.executable, "-m", "restore", command, *words, "-o", "here.png"]
    subprocess.run(here, cwd=tmp_path, check=True, capture_output=True, timeout=HANG)
    there, ours = (np.asarray(Image.open(tmp_path / name)) for name in ("there.png", "here.png"))
    assert np.array_equal(there, ours) and not np.array_equal(there, np.asarray(Image.open(tmp_path / files[0])))


@pytest.mark.thorough
def test_a_prior_is_trained_exported_and_kept_without_posix(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    rows, columns = np.indices((12, 12))
    for number in range(40):
        disc = (rows - 5 - number % 3) ** 2 + (columns - 5 - number % 4) ** 2 < 9 + number % 7
        Image.fromarray(disc.astype(np.uint8) * 255).save(tmp_path / "images" / f"{number}.png")
    words = ("train", "images", "--name", "discs", "--minutes", "0.03", "-o", "discs", "--quiet")
    done = elsewhere(RUN, *words, where=tmp_path)
    assert done.returncode == 0, done.stderr
    done = elsewhere(RUN, "export", "discs", "-o", "discs.onnx", where=tmp_path)
    assert done.returncode == 0, done.stderr
    done = elsewhere(
        RUN, "denoise", "images/3.png", "--model", "discs.onnx", "--p", "0.1", "-o", "a.png", where=tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_files_have_names_that_windows_takes() -> None:
    for path in PACKAGE.parent.rglob("*"):
        inside = path.relative_to(PACKAGE.parent)
        if inside.parts[0] in ("restore", "models", "assets", "docs", "training", "tests"):
            assert not set(path.name) & set('<>:"|?*\\\\'), path
            assert path.stem.lower() not in {"con", "prn", "aux", "nul", "com1", "lpt1"}, path
