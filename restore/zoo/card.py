"""The facts at the head of a prior's card, in YAML, as the Hugging Face hub reads them."""

from __future__ import annotations

import json
import re
from typing import Any

from restore.zoo.description import Description

# The facts of a card, with the lines around them.
HEAD = re.compile(r"\A---\n.*?^---\n+", re.DOTALL | re.MULTILINE)
# Licences that the hub knows by their names, in lower case.
LICENCES = {"apache-2.0", "mit", "bsd-3-clause", "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "unknown"}
# What tables of scores call a measure, and its name on the hub.
MEASURES = {"wrong pixels": "error_rate", "MCC": "matthews_correlation", "PSNR": "psnr", "SSIM": "ssim", "| F |": "f1"}


def without_facts(card: str) -> str:
    """The text of a card alone."""
    return HEAD.sub("", card)


def with_facts(card: str, header: Description) -> str:
    """A card with the facts that follow from a prior's header, and the measures that its text has.

    >>> with_facts("# mine", Description("mine", (28, 28), 127, "scans", "tap", hidden=1)).splitlines()[1]
    'license: "apache-2.0"'
    """
    text = without_facts(card)
    licence = header.licence.lower()
    facts: dict[str, Any] = {"license": licence if licence in LICENCES else "other"}
    facts |= {} if licence in LICENCES else {"license_name": header.licence}
    facts |= {"library_name": "restore-prior", "pipeline_tag": "image-to-image"}
    shades = "greyscale" if header.grey else "black-and-white"
    facts["tags"] = ["image-restoration", "energy-based-model", header.kind.words.replace(" ", "-").lower(), shades]
    facts |= {"datasets": [header.data], "metrics": [name for words, name in MEASURES.items() if words in text]}
    lines = [f"{name}: {json.dumps(value)}" for name, value in facts.items() if value]
    return "\n".join(["---", *lines, "---", "", text])
