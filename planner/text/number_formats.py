"""Write numbers by formats such as `S9,999.99`, as Spark's TO_CHAR does. Worker code, too.

Source: Spark's `ToNumberParser`. A format that has no `NumberFormat` here is left to Spark.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_FORM = re.compile(
    r"(?P<before>S|MI)?(?P<dollar>\$)?(?P<whole>[09]+(?:[,G][09]+)*)(?:[.D](?P<places>[09]+))?(?P<after>S|MI|PR)?"
)


@dataclass(frozen=True)
class NumberFormat:
    """A format of digits with at most one sign.

    Args:
        before: `S`, `MI` or nothing in front.
        dollar: Whether a dollar sign follows.
        whole: Digits before the point, with commas.
        places: How many digits follow the point; None without one.
        after: `S`, `MI`, `PR` or nothing at the end.
    """

    before: str
    dollar: bool
    whole: str
    places: int | None
    after: str

    def text(self, number: str) -> str:
        """A decimal number by the format, with # for each digit if it has too many."""
        negative = number.startswith("-") and any(digit in number for digit in "123456789")
        before, _, places = number.lstrip("-").partition(".")
        before, places = before.lstrip("0"), places.rstrip("0")
        blanks, digits = self._digits(before, places)
        sign = "-" if negative else "+" if "S" in (self.before, self.after) else " "
        return self._signed(blanks, digits, sign, negative)

    def _digits(self, before: str, places: str) -> tuple[int, str]:
        """Blanks in front, and the digits with their commas and the point."""
        room = sum(c in "09" for c in self.whole)
        point = "" if self.places is None else "."
        if len(before) > room or len(places) > (self.places or 0):
            hashes = "".join("#" if c in "09" else " " for c in self.whole)
            return 0, hashes + point + "#" * (self.places or 0)
        if point and not before:
            before = "0"
        digits = iter(before.rjust(room, "0" if self.whole.startswith("0") else " "))
        filled = "".join(next(digits) if c in "09" else "," for c in self.whole)
        # A comma without digits before it is blank, too.
        shown = filled.lstrip(" ,")
        return len(filled) - len(shown), shown + point + places.ljust(self.places or 0, "0")

    def _signed(self, blanks: int, digits: str, sign: str, negative: bool) -> str:
        if self.dollar:
            return self._before_dollar(f"${' ' * blanks}{digits}", sign, negative)
        bracket = self.after == "PR" and negative
        first = "<" if bracket else sign if self.before else " "
        if first != " " and digits.startswith("0.") and self.whole.startswith("9"):
            blanks, digits = blanks + 1, digits[1:]  # what is in front takes the place of the zero
        space = " " * blanks
        if self.after == "PR":
            return f"{space}<{digits}>" if negative else f"{space}{digits}  "
        if self.before:
            return f"{space}{sign}{digits}"
        if self.after and not digits:
            return f"{sign}{space}"
        return f"{space}{digits}{sign if self.after else ''}"

    def _before_dollar(self, digits: str, sign: str, negative: bool) -> str:
        if self.after == "PR":
            return f"<{digits}>" if negative else f"{digits}  "
        if self.before:
            return f"{sign}{digits}"
        if self.after and not digits.strip("$ "):
            return f"${sign}{digits[1:]}"
        return f"{digits}{sign if self.after else ''}"


@functools.cache
def number_format(text: str) -> NumberFormat | None:
    """The format that a text describes; None for one that only Spark reads."""
    match = _FORM.fullmatch(text)
    if match is None or (match["before"] and match["after"]):
        return None
    whole = match["whole"]
    if len(re.sub(r"[,G]", "", whole)) != len(whole) and len(set(whole) & {"0", "9"}) > 1:
        return None
    places = None if match["places"] is None else len(match["places"])
    return NumberFormat(
        match["before"] or "", bool(match["dollar"]), whole, places, match["after"] or ""
    )
