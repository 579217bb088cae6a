"""The options of text files in the catalog file, by the names of Spark's readers.

    tables:
      orders:
        location: data/orders
        format: csv
        options: {header: true, sep: "|", nullValue: "NULL"}
        columns: {id: BIGINT, note: STRING}

All of them reach Spark as they are. What the reader here follows is decided by `csv_format`,
`json_format` and `lines_format`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stagecoach.planner.errors import CatalogError

Options = tuple[tuple[str, str], ...]

_PARSING = (
    "mode", "columnNameOfCorruptRecord", "multiLine", "encoding", "charset", "lineSep", "locale",
    "dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat", "timeZone",
    "enableDateTimeParsingFallback", "compression",
)  # fmt: skip
CSV_OPTIONS = (
    *_PARSING, "header", "sep", "delimiter", "quote", "escape", "charToEscapeQuoteEscaping",
    "comment", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue", "emptyValue",
    "nanValue", "positiveInf", "negativeInf", "maxColumns", "maxCharsPerColumn",
    "unescapedQuoteHandling", "enforceSchema",
)  # fmt: skip
JSON_OPTIONS = (
    *_PARSING, "primitivesAsString", "prefersDecimal", "allowComments",
    "allowUnquotedFieldNames", "allowSingleQuotes", "allowNumericLeadingZeros",
    "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "allowNonNumericNumbers",
    "dropFieldIfAllNull",
)  # fmt: skip
TEXT_OPTIONS = ("encoding", "charset", "lineSep", "wholetext", "compression")
INFERENCE_OPTIONS = frozenset(
    {
        "samplingratio", "preferdate", "primitivesasstring", "prefersdecimal",
        "dropfieldifallnull",
    }
)  # fmt: skip
"""What decides which columns Spark finds, and not how it reads them."""

_MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_SWITCHES = frozenset(
    {
        "multiline", "header", "ignoreleadingwhitespace", "ignoretrailingwhitespace",
        "enforceschema", "wholetext", "preferdate", "primitivesasstring", "prefersdecimal",
        "allowcomments", "allowunquotedfieldnames", "allowsinglequotes", "allownumericleadingzeros",
        "allowbackslashescapinganycharacter", "allowunquotedcontrolchars",
        "allownonnumericnumbers", "dropfieldifallnull", "enabledatetimeparsingfallback",
    }
)  # fmt: skip


@dataclass(frozen=True)
class FileOptions:
    """The options of a table.

    Args:
        given: Names as Spark spells them, and values as texts.
    """

    given: Options = ()

    def get(self, name: str, default: str = "") -> str:
        """Return the value of an option, whatever the case of its name."""
        return next((v for n, v in self.given if n.lower() == name.lower()), default)

    def is_on(self, name: str, *, default: bool = False) -> bool:
        """Return whether a switch is on."""
        return self.get(name, str(default)).lower() == "true"

    @property
    def mode(self) -> str:
        """What becomes of a corrupt record."""
        return self.get("mode", _MODES[0]).upper()

    @property
    def corrupt_column(self) -> str:
        """Name of the column that gets the text of a corrupt record, if the table has it."""
        return self.get("columnNameOfCorruptRecord", "_corrupt_record")

    def besides(self, names: Sequence[str]) -> str | None:
        """Return an option that is none of these and decides what is read, or None."""
        known = {name.lower() for name in names} | INFERENCE_OPTIONS
        return next((name for name, _ in self.given if name.lower() not in known), None)


def is_utf8(options: FileOptions) -> bool:
    """Return whether the files are said to be UTF-8, or nothing is said."""
    encoding = options.get("encoding") or options.get("charset") or "UTF-8"
    return encoding.upper() in ("UTF-8", "UTF8")


def read_options(place: str, body: object, known: Sequence[str]) -> FileOptions:
    """Return the options that a table gives.

    Args:
        place: Where the table stands, for messages.
        body: The value of the key `options`.
        known: Names of the format's options, as Spark spells them.

    Raises:
        CatalogError: One is unknown, is given twice or has no valid value.
    """
    if not isinstance(body, Mapping):
        raise CatalogError(
            f"{place}: 'options' must map names of options to their values, such as "
            f"{{{known[0]}: …}}, not {body!r}"
        )
    names = {name.lower(): name for name in (*known, *_inferring(known))}
    found: dict[str, str] = {}
    for name, value in body.items():
        key = str(name).lower()
        if key not in names:
            close = difflib.get_close_matches(key, names, n=1)
            hint = f"; did you mean {names[close[0]]!r}?" if close else ""
            raise CatalogError(
                f"{place}: unknown option {name!r}{hint} (known options: "
                f"{', '.join(sorted(names.values(), key=str.lower))})"
            )
        if names[key] in found:
            raise CatalogError(f"{place}: option {names[key]!r} is given twice")
        found[names[key]] = _value(f"{place}, option {name!r}", key, value)
    for name, other in (("sep", "delimiter"), ("encoding", "charset")):
        if name in found and other in found:
            raise CatalogError(f"{place}: options {name!r} and {other!r} mean the same; give one")
    return FileOptions(tuple(sorted(found.items())))


def _inferring(known: Sequence[str]) -> Sequence[str]:
    return () if known is TEXT_OPTIONS else ("samplingRatio", "preferDate")


def _value(place: str, key: str, value: object) -> str:
    if isinstance(value, bool):
        value = str(value).lower()
    if not isinstance(value, str | int | float):
        raise CatalogError(f"{place}: expected text, a number, true or false, not {value!r}")
    text = str(value)
    if key in _SWITCHES and text.lower() not in ("true", "false"):
        raise CatalogError(f"{place}: expected true or false, not {value!r}")
    if key == "mode" and text.upper() not in _MODES:
        raise CatalogError(f"{place}: expected {', '.join(_MODES)}, not {value!r}")
    return text
