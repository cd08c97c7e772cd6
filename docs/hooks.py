"""What the documentation site shows beside the repository's pages: commands, Python and examples, all made of code.

RESTORE_SITE may name a folder of what was built before: gallery/, the pictures that the examples drew, and demo/, what
`docs/demo.py` wrote.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md", "training/*.md", "benchmarks/*.md")
PICTURES = ("assets/*.png", "docs/**/*.png", "docs/site.css", "docs/site.js", "training/**/*.png")
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def on_config(config: Any) -> Any:
    """An entry of the navigation for the page that restores in the browser, if it was built."""
    if demo():
        config.nav.insert(1, {"Try it": "demo/index.html"})
    return config


def on_files(files: Files, config: Any) -> Files:
    """The pages where they lie in the repository, with those that are made of code; the theme's own files stay."""
    sys.path.insert(0, str(ROOT))
    kept = [one for one in files if one.src_dir != config.docs_dir]
    for pattern in PAGES + PICTURES:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            kept.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    made = {"reference/commands.md": commands(), "reference/python.md": python(), "examples/README.md": gallery()}
    kept += [File.generated(config, name, content=text) for name, text in made.items()]
    kept += [File.generated(config, f"examples/{path.name}", abs_src_path=str(path)) for path in pictures()]
    kept += [File.generated(config, f"demo/{name}", abs_src_path=str(path)) for name, path in demo().items()]
    return Files(kept)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links to files that the site does not show lead to the repository."""
    folder = posixpath.dirname(page.file.src_uri)

    def target(found: re.Match[str]) -> str:
        if ":" in found[2]:
            return found[0]
        name = posixpath.normpath(posixpath.join(folder, found[2]))
        if files.get_file_from_path(name) or not (ROOT / name).exists():
            return found[0]
        kind = "tree" if (ROOT / name).is_dir() else "blob"
        return f"{found[1]}{config.repo_url.rstrip('/')}/{kind}/main/{name}{found[3]}"

    return LINK.sub(target, markdown)


def commands() -> str:
    """Every command with its arguments and options, as `--help` says them."""
    import typer

    from restore.cli.command import COMMANDS, app

    parts = ["# Commands", "What `restore COMMAND --help` says."]
    for name in COMMANDS:
        command = typer.main.get_command(app(name)).commands[name]  # type: ignore[attr-defined]
        with command.make_context(name, [], resilient_parsing=True) as context:
            parts += [f"## restore {name}", command.help or ""]
            for title, records in command.panels(context).items():
                rows = [f"| `{words}` | {_cell(text)} |" for words, text in records]
                parts.append("\n".join([f"| {title} | |", "| --- | --- |", *rows]))
            if command.epilog:
                parts.append(f"```sh\n{command.epilog.removeprefix('Example:').strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def python() -> str:
    """Everything public of `restore`, by its docstrings."""
    import restore

    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors": []}
    for name in restore.__all__:
        thing = getattr(restore, name)
        error = isinstance(thing, type) and issubclass(thing, Exception)
        groups["Errors" if error else "Classes" if isinstance(thing, type) else "Functions"].append(f"restore.{name}")
    groups["Classes"] += ["restore.torch.Restorer", "restore.sklearn.BoltzmannMachine"]
    parts = ["# Python", "What can be imported from `restore`; [the guide](../docs/python.md) shows how it is used."]
    for title, names in groups.items():
        parts += [f"## {title}", *(f"::: {name}\n    options:\n      toc_label: {name}" for name in names)]
    return "\n\n".join(parts) + "\n"


def built(name: str) -> Path | None:
    """A folder of what was built beside the site, in the folder that RESTORE_SITE names."""
    folder = os.environ.get("RESTORE_SITE")
    return Path(folder) / name if folder else None


def demo() -> dict[str, Path]:
    """The files that `docs/demo.py` wrote to demo/, by their names there."""
    folder = built("demo")
    found = sorted(path for path in folder.rglob("*") if path.is_file()) if folder else []
    return {path.relative_to(folder).as_posix(): path for path in found if folder}


def scripts() -> Iterator[Path]:
    return iter(sorted((ROOT / "examples").glob("*.py")))


def pictures() -> list[Path]:
    """The pictures that the examples drew in gallery/."""
    folder = built("gallery")
    return sorted(folder.glob("*.png")) if folder else []


def gallery() -> str:
    """A section for each example: what it shows, its picture, its code."""
    drawn = {path.stem for path in pictures()}
    parts = ["# Examples", "Scripts of at most sixty lines. Each writes a picture into the working directory."]
    for path in scripts():
        code = path.read_text(encoding="utf-8")
        title, _, rest = (ast.get_docstring(ast.parse(code)) or "").partition("\n")
        parts += [f"## {title.rstrip('.')}", rest.strip()]
        if path.stem in drawn:
            parts.append(f"![{title.rstrip('.')}]({path.stem}.png)")
        body = code.split('"""', 2)[2].strip()
        parts.append(f"[{path.name}]({path.name})\n\n```python\n{body}\n```")
    return "\n\n".join(part for part in parts if part) + "\n"
