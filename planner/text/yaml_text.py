"""Write plain data as YAML, for `explain --format yaml`.

The planner depends on no YAML library; this writes the subset that plans need, in block style.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

Data = None | bool | int | float | str | Sequence["Data"] | Mapping[str, "Data"]

# Text that needs no quotes: no character with a meaning anywhere in YAML, and no number.
_PLAIN = re.compile(r"[A-Za-z_(]([A-Za-z0-9_ .,()<>=*/+'|~→·-]*[A-Za-z0-9_.()>*'])?")
# What YAML 1.1 reads as a boolean or null.
_RESERVED = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
_SEPARATOR = "---\n"
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
_MARGIN = "  "


def to_yaml(data: Data) -> str:
    """The data as one YAML document that ends in a newline."""
    return "\n".join(_lines(data, "")) + "\n"


def to_documents(documents: Mapping[str, Data]) -> str:
    """Several documents in one stream, each below a line that names it."""
    return "".join(f"{_SEPARATOR}# {name}\n{to_yaml(data)}" for name, data in documents.items())


def _lines(data: Data, margin: str) -> list[str]:
    if isinstance(data, Mapping) and data:
        return [
            line
            for key, value in data.items()
            for line in _entry(f"{_scalar(key)}:", value, margin)
        ]
    if _is_list(data) and data:
        return [line for item in data for line in _item(item, margin)]
    return [margin + _inline(data)]


def _entry(head: str, value: Data, margin: str) -> list[str]:
    if isinstance(value, str) and _is_block(value):
        return [f"{margin}{head} |-", *(margin + _MARGIN + line for line in value.split("\n"))]
    if value and (isinstance(value, Mapping) or _is_list(value)):
        return [f"{margin}{head}", *_lines(value, margin + _MARGIN)]
    return [f"{margin}{head} {_inline(value)}"]


def _item(item: Data, margin: str) -> list[str]:
    if not isinstance(item, Mapping) or not item:
        return _entry("-", item, margin)
    first, *rest = _lines(item, margin + _MARGIN)
    return [f"{margin}- {first.removeprefix(margin + _MARGIN)}", *rest]


def _is_list(data: Data) -> TypeGuard[Sequence[Data]]:
    return isinstance(data, Sequence) and not isinstance(data, str)


def _is_block(text: str) -> bool:
    """Whether the text reads back unchanged from a literal block."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and all(line and line == line.rstrip() for line in lines)
        and not text.startswith((" ", "\t"))
        and not any(ord(c) < 32 and c != "\n" for c in text)
        and not _UNSAFE.search(text)
    )


def _inline(data: Data) -> str:
    if isinstance(data, str):
        return _scalar(data)
    if isinstance(data, Mapping):
        return "{}"
    if _is_list(data):
        return "[]"
    return json.dumps(data)


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
