"""Build dataclasses from TOML or JSON: recipes, headers of priors, records of studies."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Collection, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar

from restore.errors import UsageError, reason, require, shown

Made = TypeVar("Made")

# Larger whole numbers than files can hold cannot even be written into a message.
LARGEST_INTEGER = 2**63

_NAMES: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    dict: "a table",
    list: "a list",
}


def structure(kind: type[Made], table: Mapping[str, Any], where: str = "") -> Made:
    """Build a dataclass from a table, checking names and types; the class itself checks ranges (`check_ranges`).

    Types are those of TOML, dataclasses, and named tuples, which are lists there; tuples of them; choices of words; and
    unions, such as a number or None.

    Args:
        kind: the dataclass.
        table: its values by name; a whole number is accepted where any number is.
        where: how messages call the table, such as "[prior] ".

    Raises:
        UsageError: for unknown and missing keys, and wrong types and values; it names the key and what it may be.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     name: str
    ...     at: tuple[float, ...] = ()
    >>> structure(Point, {"name": "a", "at": [1, 2.5]})
    Point(name='a', at=(1.0, 2.5))
    >>> structure(Point, {"naem": "a"})
    Traceback (most recent call last):
    restore.errors.UsageError: naem is not a known key; did you mean name?
    """
    known = {entry.name: entry for entry in fields(kind) if entry.init}  # type: ignore[arg-type]
    hints = _hints(typing.cast(type, kind))
    for key in table:
        if key not in known:
            raise UsageError(f"{where}{shown(key)} is not a known key; {_hint_at(key, known)}")
    for key, entry in known.items():
        optional = entry.default is not MISSING or entry.default_factory is not MISSING
        require(optional or key in table, f"{where}{key} is missing; add it")
    values = {key: _typed(value, hints[key], f"{where}{key}") for key, value in table.items()}
    try:
        return kind(**values)
    except UsageError as fault:
        raise UsageError(f"{where}{fault}") from fault


def check_ranges(settings: object, **ranges: tuple[float, float]) -> None:
    """Refuse settings, named by keywords, that lie outside their range, both ends included.

    Raises:
        UsageError: naming the setting and its range.
    """
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        # Written so that NaN fails too.
        if not low <= value <= high:
            raise UsageError(f"{name} must lie in {low} ... {high}, not {value}")


@functools.cache
def _hints(kind: Hashable) -> dict[str, Any]:
    """The types of fields: evaluating them takes longer than all else, and `auto` reads the headers of all priors."""
    return typing.get_type_hints(kind)


def expect(value: Any, kind: type, where: str) -> Any:
    """Check that a value has a type of TOML, turning whole numbers into floats where these are meant."""
    if kind is float and type(value) is int and abs(value) < LARGEST_INTEGER:
        return float(value)
    if type(value) is not kind or (isinstance(value, int) and abs(value) >= LARGEST_INTEGER):
        raise UsageError(f"{where} must be {_NAMES[kind]}, not {short(value)}")
    return value


def short(value: Any) -> str:
    """A value in a message: on one line, and short."""
    try:
        return reason(ValueError(repr(value)))
    except ValueError:  # thousands of digits
        return f"this {type(value).__name__}"


def _typed(value: Any, hint: Any, where: str) -> Any:
    """A value of the type that a field declares."""
    parts = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if hint is Any:
        return value
    if isinstance(origin, type) and issubclass(origin, Mapping):  # of any values
        return expect(value, dict, where)
    if origin is Literal:
        if value not in parts:
            raise UsageError(f"{where} must be one of {', '.join(map(str, parts))}, not {short(value)}")
        return value
    if origin is tuple:
        return _entries(value, parts, where)
    if origin in (typing.Union, types.UnionType):
        # None, or a word, stands for a value of the first type.
        others = [other for part in parts[1:] for other in typing.get_args(part)]
        return value if (value is None and type(None) in parts) or value in others else _typed(value, parts[0], where)
    if hasattr(hint, "_fields"):
        return _named_entries(value, hint, where)
    if not is_dataclass(hint):
        return expect(value, hint, where)
    # A table within a table is called by both names, as TOML does.
    table = f"[{where.removeprefix('[').replace('] ', '.')}]"
    return structure(typing.cast(type, hint), expect(value, dict, table), f"{table} ")


def _entries(value: Any, parts: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    """The entries of a tuple of these types; the first one is that of all before an ellipsis."""
    entries = expect(value, list, where)
    kinds = [parts[0]] * len(entries) if parts[-1] is Ellipsis else [*parts]
    if len(entries) != len(kinds):
        raise UsageError(f"{where} must have {len(kinds)} entries, not {short(value)}")
    return tuple(_typed(entry, kind, f"{where} entries") for entry, kind in zip(entries, kinds, strict=True))


def _named_entries(value: Any, kind: Any, where: str) -> Any:
    entries = expect(value, list, where)
    hints = _hints(typing.cast(type, kind))
    if len(entries) != len(hints):
        raise UsageError(f"{where} must be [{', '.join(hints)}], not {short(value)}")
    pairs = zip(entries, hints.items(), strict=True)
    return kind(*(_typed(entry, hint, f"{where} {name}") for entry, (name, hint) in pairs))


def _hint_at(word: str, known: Collection[str]) -> str:
    """Suggest the known word that an unknown one may stand for."""
    import difflib

    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
