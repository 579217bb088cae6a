"""Settings models whose docstring is their documentation.

A settings model says what each field means in the section `Args:` or `Attributes:` of its
docstring, nowhere else. The reference in docs/ and `stagecoach config` are made from that.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from typing import Any

_SECTION = re.compile(r"^(?:Args|Attributes):\n((?:[ ]{4}.*\n|\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+(?:, \w+)*):[ \n]", re.MULTILINE)
_SIZES = ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DescribedField:
    """A field of a settings model.

    Args:
        name: Its name.
        default: Its default.
        meaning: What it means, on one line.
    """

    name: str
    default: Any
    meaning: str

    @property
    def unit(self) -> str:
        """What a number of it counts: by convention the end of the name says it."""
        for unit in ("bytes", "seconds", "rows"):
            if self.name.endswith(f"_{unit}"):
                return unit
        if isinstance(self.default, bool):
            return "true or false"
        return "number" if isinstance(self.default, int | float) else ""

    @property
    def default_text(self) -> str:
        """The default as one writes it."""
        if self.default is None or self.default == "" or self.default == {}:
            return ""
        if self.unit == "bytes":
            return bytes_text(self.default)
        if isinstance(self.default, bool):
            return str(self.default).lower()
        if isinstance(self.default, float):
            return f"{self.default:g}"
        return str(self.default) if isinstance(self.default, int | str) else ""


def described_fields(model: type[Any]) -> tuple[DescribedField, ...]:
    """The fields of a dataclass with what its docstring says of them, empty where it is silent."""
    meanings = _meanings(inspect.getdoc(model) or "")
    return tuple(
        DescribedField(
            name=field.name,
            default=_default(field),
            meaning=meanings.get(field.name, ""),
        )
        for field in dataclasses.fields(model)
    )


def bytes_text(num_bytes: int) -> str:
    """A number of bytes with its largest exact unit; `256 MiB`."""
    for bits, unit in _SIZES:
        if num_bytes and num_bytes % (1 << bits) == 0:
            return f"{num_bytes >> bits} {unit}"
    return str(num_bytes)


def _meanings(doc: str) -> dict[str, str]:
    section = _SECTION.search(doc + "\n")
    if section is None:
        return {}
    pieces = _ENTRY.split(textwrap.dedent(section[1]))
    # What comes before the first entry, then names and texts in turn.
    found: dict[str, str] = {}
    for names, text in zip(pieces[1::2], pieces[2::2], strict=True):
        found |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return found


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return None if field.default_factory is dataclasses.MISSING else field.default_factory()
