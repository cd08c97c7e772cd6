"""Write the table of reasons why an image comes back as it came, into the page of the command line.

python docs/rules.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from restore.inference.decision.facts import Facts
from restore.inference.decision.rules import RULES

PAGE = Path(__file__).parent / "command-line.md"
MARKED = re.compile(r"(<!-- rules: begin -->\n).*?(<!-- rules: end -->)", re.DOTALL)


def meanings() -> dict[str, str]:
    """What each fact is, by its name, from the docstring of `Facts`."""
    text = (Facts.__doc__ or "").partition("Attributes:")[2]
    return {name: " ".join(words.split()) for name, words in re.findall(r"(\w+): (.*?)\.\n", text, re.DOTALL)}


def table() -> Iterator[str]:
    known = meanings()
    yield "| the command says | as it measured | limit | chosen by |"
    yield "| --- | --- | --- | --- |"
    for rule in RULES:
        limit, script = f"{rule.side} {rule.limit:g}", f"`benchmarks/choices/{rule.chosen_by}`"
        yield f"| {rule.status.sentence} | `{rule.fact}`: {known[rule.fact]} | {limit} | {script} |"


def written(page: str) -> str:
    """The page with the table as it is now."""
    lines = "\n".join(table())
    return MARKED.sub(lambda found: f"{found[1]}{lines}\n{found[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
