"""Document the requests and answers of the server, for OpenAPI and as a page without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

PNG = "image/png"
JSON = "application/json"

# The header with the facts on a picture that is returned as a PNG, in JSON.
RECORD_HEADER = "X-Restore"

_FILE = {"type": "string", "format": "binary"}
_TEXT = {"type": "string"}
_RECORD = {"outcome": _TEXT, "status": _TEXT, "model": _TEXT, "notes": {"type": "array", "items": _TEXT}}
_PICTURE = {"type": "string", "format": "byte"}
_PICTURES = dict.fromkeys(("image", "means", "deviations", "soft"), _PICTURE)
_COUNTS = {"type": "object", "additionalProperties": {"type": "object"}}


def _object(parts: Mapping[str, Any], *, more: bool = True) -> dict[str, Any]:
    return {"schema": {"type": "object", "properties": parts, "required": [*parts], "additionalProperties": more}}


RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": f"The image as a PNG, with what became of it as JSON in the header {RECORD_HEADER}; with "
        f"`Accept: {JSON}` all in JSON, PNGs in base64: the image, its means, twice its standard deviations, and what "
        "soft writes.",
        "content": {PNG: {"schema": _FILE}, JSON: _object(_RECORD | _PICTURES)},
        "headers": {RECORD_HEADER: {"schema": _TEXT}},
    }
}
_FAULT = {JSON: _object(dict.fromkeys(("error", "class", "subject", "remedy"), _TEXT))}
RESPONSES |= {
    code: {"description": description, "content": _FAULT}
    for code, description in {
        400: "It is no form.",
        403: "It comes from the page of another site.",
        408: "It was sent too slowly.",
        413: "The image, or the whole, is too large.",
        421: "It names another host.",
        422: "An option or image cannot be used; with strict, no restoration of the image can be trusted.",
        500: "The server failed at it; its log says more.",
        503: "The queue is full.",
        504: "It took too long to restore.",
    }.items()
}


_FOUND = {
    "description": f"A mask as a PNG, white = marks, with how many there are of each kind as JSON in the header "
    f"{RECORD_HEADER}; with `Accept: {JSON}` all in JSON, the mask of all and one for each kind as PNGs in base64.",
    "content": {PNG: {"schema": _FILE}, JSON: _object({"marks": _COUNTS, "image": _PICTURE})},
    "headers": {RECORD_HEADER: {"schema": _TEXT}},
}


def responses_of(task: str) -> dict[int | str, dict[str, Any]]:
    """What is answered to a request."""
    return RESPONSES | ({200: _FOUND} if task == "marks" else {})


def body_of(task: str) -> dict[str, Any]:
    """The body of a request: a form of files, or the image alone if nothing else is needed."""
    names = ["image", "mask"] if task == "complete" else ["image"]
    content = {"multipart/form-data": _object(dict.fromkeys(names, _FILE), more=False)}
    if task != "complete":
        content["application/octet-stream"] = {"schema": _FILE}
    return {"required": True, "content": content}


def reference(schema: Mapping[str, Any]) -> str:
    """A page of an OpenAPI schema: each operation with its options."""
    links = "The schema is <a href=openapi.json>openapi.json</a>; <a href=./>the page</a> uses it."
    parts = [f"<h1>restore</h1><p>{links}</p>"]
    for path, operations in schema["paths"].items():
        for method, one in operations.items():
            forms = one.get("requestBody", {}).get("content", {}).values()
            files = [name for form in forms for name in form["schema"].get("properties", ())]
            options = "".join(map(_option, one.get("parameters", ())))
            codes = "".join(f"<dt>{code}<dd>{escape(reply['description'])}" for code, reply in one["responses"].items())
            parts.append(f"<h2>{method.upper()} {path}</h2><p>{escape(one['summary'])}.</p>")
            parts.append(f"<p>Files: {', '.join(files)}.</p><dl>{options}</dl>" if files else "")
            parts.append(f"<dl>{codes}</dl>")
    head = "<!doctype html><html lang=en><meta charset=utf-8><title>restore</title><link rel=stylesheet href=style.css>"
    return f"{head}<main>{''.join(parts)}</main>"


def _option(parameter: Mapping[str, Any]) -> str:
    kind = parameter["schema"]
    values = kind.get("enum") or [choice["type"] for choice in kind.get("anyOf", [kind]) if choice["type"] != "null"]
    default = f" [{kind['default']}]" if "default" in kind else ""
    texts = (parameter["name"], parameter["description"] + default, ", ".join(values))
    return "<dt>{}<dd>{}<br>{}".format(*map(escape, texts))
