"""Build the page that restores in the browser, for any server of static files: `python docs/demo.py`.

    python docs/demo.py --output site/demo
    python -m http.server --directory site

It has a prior of print, with a noisy page to begin with, one of drawings, and one of grey pages. All runs in the
browser, and nothing is fetched from elsewhere. `restore app --install` downloads onnxruntime-web first, once.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from restore import zoo
from restore.app import assembly, runtime

ROOT = Path(__file__).resolve().parent.parent
# The priors, the first to begin with, and for each a picture among assets/ that needs no further damage.
SCANS = {"conv-text": "page-noisy.png", "conv-art": "mask-noisy.png", "conv-scan": "old-page.png"}


def build(output: Path) -> Path:
    """Write the page into a folder, which may exist; return the address to open."""
    folders = [zoo.published_folder() / name for name in SCANS]
    assembly.write(folders, runtime.installed(runtime.user_folder()), output, overwrite=True)
    listing = json.loads((output / "models.json").read_text(encoding="utf-8"))
    listing["preferred"] = next(iter(SCANS))
    for prior in listing["priors"]:
        scan = SCANS[prior["name"]]
        prior["scans"] = [scan]
        (output / scan).write_bytes((ROOT / "assets" / scan).read_bytes())
    (output / "models.json").write_text(json.dumps(listing, indent=1), encoding="utf-8")
    return output / "index.html"


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the page that restores in the browser.")
    parser.add_argument("--output", type=Path, default=ROOT / "site" / "demo", help="[%(default)s]")
    print(build(parser.parse_args().output))


if __name__ == "__main__":
    main()
