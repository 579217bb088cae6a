"""The base of expressions and operators: values that compare and hash by content.

Rules look the same trees up in dictionaries again and again, and the hash of a tree takes as long
as it has nodes. So each node computes its hash once, from the remembered hashes of its children.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar


class Value:
    """A frozen dataclass that remembers its hash."""

    _compared: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the hash of this class: `dataclass` leaves one alone that the class has itself."""
        super().__init_subclass__(**kwargs)
        cls.__hash__ = Value.__hash__  # type: ignore[method-assign]
        cls._compared = ()

    def __hash__(self) -> int:
        """Equal for equal values."""
        known: int | None = vars(self).get("_hash")
        if known is None:
            cls = type(self)
            if not cls._compared:  # the fields are known only when the class is complete
                cls._compared = tuple(f.name for f in fields(cls) if f.compare)  # type: ignore[arg-type]
            known = hash((cls, *[getattr(self, name) for name in cls._compared]))
            vars(self)["_hash"] = known
        return known

    def __getstate__(self) -> dict[str, Any]:
        """Without the hash: texts hash differently in another process."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}
