r"""Fields of a block of CSV lines, where Spark's CSV library reads them only one way.

Spark splits a file into lines first, whatever quotes there are, and leaves out lines of nothing but
blanks. Its library, univocity, then reads a field that begins with a quote up to the next one. What
it does with any other quote, with escapes and with lines of another number of fields is not
followed here. A block that has one raises, and Spark reads the file.

Found by experiment with Spark 4.3, and what becomes of it here:

    bytes of a block                         Spark                               here
    a,"b,c",d                                quotes are left out                 read
    "x""y" where the escape is the quote     x"y                                 read
    "x""y" else, "x\"y"                      depends on what follows             Spark reads
    ab"c, "x" y, "x                          depends on unescapedQuoteHandling   Spark reads
    a line break between quotes              ends the line                       Spark reads
    fewer or more fields than columns        corrupt record                      Spark reads
    empty lines                              left out                            read
    lines of blanks and control characters   left out                            Spark reads
    carriage return without line feed        ends the line                       Spark reads
    bytes that are not UTF-8                 U+FFFD                              Spark reads
    NUL                                      begins a comment                    Spark reads

Worker code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from stagecoach.infra.errors import QueryError

BLANKS = bytes(range(33))
"""What Java's `trim` leaves out."""

_LINE_FEED, _RETURN = 10, 13
_BOM = b"\xef\xbb\xbf"
# A line that Java's `trim` leaves nothing of, though it has something.
_BLANK_LINE = re.compile(rb"(?:\A|\n)[\x00-\x09\x0b\x0c\x0e-\x20]+\r?(?:\n|\Z)")


class UnclearTextError(QueryError):
    """A text that may have another meaning to Spark; Spark must read it."""


@dataclass(frozen=True)
class CsvRules:
    """How lines are divided into fields.

    Args:
        separator: One ASCII character.
        quote: One ASCII character; empty where quotes mean nothing.
        escape: Before a quote inside of quotes; empty for nothing.
        num_columns: Fields of a line.
        tells_empty: Whether an empty field between quotes differs from one without.
    """

    separator: str
    quote: str
    escape: str
    num_columns: int
    tells_empty: bool


def split_fields(block: bytes, rules: CsvRules, wanted: Sequence[int]) -> pa.Table:
    """Return fields of each line as texts, columns named by their numbers.

    Args:
        block: Whole lines.
        rules: How they are divided.
        wanted: Which fields, 0-based.

    Raises:
        UnclearTextError: The block is not read in only one way.
    """
    check_lines(block)
    _check_quotes(block, rules)
    if (rules.num_columns == 1 or rules.separator.isspace()) and _BLANK_LINE.search(block):
        raise UnclearTextError("a line of CSV has blanks only")
    if not block.strip(b"\r\n"):
        return pa.table({str(i): pa.array([], pa.string()) for i in wanted})
    if block.startswith(_BOM):
        block = b"\n" + block  # Arrow would leave it out; it is that of a file no more
    names = [str(i) for i in range(rules.num_columns)]
    included = [names[i] for i in wanted]
    parsing = pa.csv.ParseOptions(
        delimiter=rules.separator,
        quote_char=rules.quote or False,
        double_quote=rules.quote == rules.escape,
        newlines_in_values=False,
        ignore_empty_lines=True,
    )
    converting = pa.csv.ConvertOptions(
        check_utf8=False,
        column_types=dict.fromkeys(included, pa.string()),
        include_columns=included,
        strings_can_be_null=False,
    )
    reading = pa.csv.ReadOptions(
        use_threads=False, block_size=max(len(block), 1024), column_names=names
    )
    try:
        return pa.csv.read_csv(pa.BufferReader(block), reading, parsing, converting)
    except pa.ArrowInvalid as error:
        raise UnclearTextError(f"a line of CSV is not as the table's columns: {error}") from error


def check_lines(block: bytes) -> None:
    """Look whether every reader finds the same lines of the same characters in a block.

    Raises:
        UnclearTextError: It does not.
    """
    if b"\x00" in block:
        raise UnclearTextError("a line has the character NUL")
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        raise UnclearTextError("a line has a carriage return that is no part of its end")
    if not block.isascii():
        try:
            pa.array([block], pa.large_binary()).cast(pa.large_string())
        except pa.ArrowInvalid:
            raise UnclearTextError("a line is not UTF-8") from None


def _check_quotes(block: bytes, rules: CsvRules) -> None:
    """Look whether quotes stand around whole fields, in pairs within a line."""
    quote = rules.quote.encode()
    if not quote or quote not in block:
        return
    codes = np.frombuffer(block, np.uint8)
    places = np.flatnonzero(codes == quote[0])
    if len(places) % 2:
        raise UnclearTextError("a quote of CSV is not closed")
    opening, closing = places[::2], places[1::2]
    before = _codes_at(codes, opening - 1)
    after = _codes_at(codes, closing + 1)
    separator = ord(rules.separator)
    begins = (before == separator) | (before == _LINE_FEED)
    ends = (after == separator) | (after == _LINE_FEED) | (after == _RETURN)
    if rules.escape == rules.quote:
        # Two in a row within a field are one quote: it is closed, and opened again.
        doubled = np.zeros(len(opening), bool)
        doubled[1:] = opening[1:] == closing[:-1] + 1
        begins |= doubled
        ends[:-1] |= doubled[1:]
    elif rules.escape:
        _check_none_inside(codes, ord(rules.escape), opening, closing, "an escape of CSV")
    if not (begins.all() and ends.all()):
        raise UnclearTextError("a quote of CSV does not stand around a whole field")
    _check_none_inside(codes, _LINE_FEED, opening, closing, "the end of a line")
    if rules.tells_empty and bool((closing == opening + 1).any()):
        raise UnclearTextError("an empty field of CSV has quotes")


def _codes_at(codes: npt.NDArray[np.uint8], places: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """The bytes at places; a line feed before the first and after the last."""
    inside = (places >= 0) & (places < len(codes))
    found = np.full(len(places), _LINE_FEED, np.uint8)
    found[inside] = codes[places[inside]]
    return found


def _check_none_inside(
    codes: npt.NDArray[np.uint8],
    code: int,
    opening: npt.NDArray[np.int64],
    closing: npt.NDArray[np.int64],
    what: str,
) -> None:
    places = np.flatnonzero(codes == code)
    if (np.searchsorted(places, opening) != np.searchsorted(places, closing)).any():
        raise UnclearTextError(f"{what} stands between quotes")
