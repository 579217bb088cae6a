"""Texts of Python values, as Spark writes them."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any


class Entries(list[tuple[Any, Any]]):
    """The entries of a map, which an empty list could not be told from."""


def to_text(value: Any) -> str:
    """A value as Spark casts it to a string, but binary as `hex` writes it.

    The bytes need not be text, and values that differ are to look different.
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return _float_text(value)
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex().upper()
        case datetime.datetime():
            return moment_text(value)
        case datetime.date():
            return value.isoformat()
        case dict():
            return "{" + ", ".join(to_text(v) for v in value.values()) + "}"
        case Entries():
            return "{" + ", ".join(f"{to_text(k)} -> {to_text(v)}" for k, v in value) + "}"
        case list():
            return "[" + ", ".join(to_text(v) for v in value) + "]"
    return str(value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    # Java writes 1.0E7 where Python writes 10000000.0.
    if value and not 1e-3 <= abs(value) < 1e7:
        digits, _, exponent = f"{Decimal(repr(value)):E}".partition("E")
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
        return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"
    return repr(value) if "e" not in repr(value) else format(Decimal(repr(value)), "f")


def moment_text(moment: datetime.datetime) -> str:
    """A timestamp as Spark casts it to a string, without its zone."""
    text = moment.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if "." in text else text
