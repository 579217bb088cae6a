"""Generated text files, with the options and columns by which they are read: one for each seed."""

from __future__ import annotations

import bz2
import gzip
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

CSV_TYPES = (
    "string", "string", "string", "int", "bigint", "tinyint", "smallint", "double", "boolean",
    "date", "timestamp", "timestamp_ntz", "decimal(10,2)", "decimal(38,18)", "decimal(3,0)",
)  # fmt: skip
JSON_TYPES = (
    "string", "string", "int", "bigint", "double", "boolean", "date", "timestamp", "smallint",
    "array<bigint>", "array<string>", "struct<x: int, y: string>", "map<string, int>",
    "decimal(10,2)", "float",
)  # fmt: skip

_PLAIN = {
    "string": ("abc", "x", "Grüße", "a b", "日本", "0", "null", "NA", "it's", "a-b", "😀"),
    "int": ("0", "1", "-5", "2147483647", "-2147483648", "42"),
    "bigint": ("0", "9223372036854775807", "-9223372036854775808", "123456789012"),
    "tinyint": ("0", "127", "-128"),
    "smallint": ("0", "32767", "-32768"),
    "double": ("0.5", "-1e10", "3", "1.0", "2.5E-3", ".5", "123456.789"),
    "float": ("0.5", "3", "-2.25"),
    "boolean": ("true", "false", "TRUE", "False"),
    "date": ("2024-01-31", "1969-12-31", "0001-01-01", "9999-12-31", "1582-10-10"),
    "timestamp": ("2024-01-31 10:11:12", "2024-01-31T10:11:12.123456", "1900-01-01 00:00:00.5"),
    "timestamp_ntz": ("2024-01-31 10:11:12", "2024-03-31T02:30:00", "1900-01-01 00:00:00.5"),
    "decimal(10,2)": ("0.00", "12345678.90", "-1.5", "3"),
    "decimal(38,18)": ("0", "1.000000000000000001", "-12345678901234567890.5"),
    "decimal(3,0)": ("1", "999", "-5"),
}
_ODD = (
    "", " ", "  x", "x  ", "+5", "007", "-0", "1e3", "1E400", "NaN", "Infinity", "-Inf", "inf", "0x1F", "1_000",
    "99999999999999999999", "2147483648", "1.005", "12345678901.25", "--1", "1.", "t", "yes", "1",
    "2024-02-30", "2024-1-5", "2024-01-31 25:00:00", "2024-01-31 10:11", "10:11:12", "24-01-01",
    "2024-01-31 10:11:12+02:00", "2024-01-31T10:11:12Z", "2024-01-31 10:11:12 Europe/Berlin",
    "+12345-01-01", "0000-01-01", "2024-01-31 10:11:12.1234567", "٣", "1d", "1f", "1L", "#x",
    "\\N", "\\", "a\\b", "NULL", "null", "\ufeffx", "a\u2028b", "a\u0085b", "\x0b", "\x01", "\u00a0",
)  # fmt: skip
_BROKEN_CSV = (
    '"', 'a"b', '"a"b', '"a""b"', '"a\\"b"', '""', '"""', '"a', 'a"', '" "', '"a" ', ' "a"',
    '"a,b"', '"a;b|c"', "'a'", "'a,b'", '"a\nb"', "a\rb", "a\x00b", '"\\"', '"a\\\\"', '"a\\',
)  # fmt: skip
_BYTES = (b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file and how it is read.

    Args:
        format: `csv`, `json` or `text`.
        name: Name of the file.
        content: What is in it.
        options: Options of Spark's reader.
        columns: Declared columns by name.
        selected: Those that are read.
        cuts: Where the file is cut into ranges, as shares.
        time_zone: Of the session.
    """

    format: str
    name: str
    content: bytes
    options: Mapping[str, str]
    columns: Mapping[str, str]
    selected: tuple[str, ...]
    cuts: tuple[float, ...]
    time_zone: str


_PACKS: Mapping[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}


def make_case(seed: int) -> Case:
    """Return the file of a seed."""
    random_ = random.Random(seed)
    kind = random_.choices(("csv", "json", "text"), (6, 3, 1))[0]
    content, options, columns = {"csv": _csv, "json": _json, "text": _text}[kind](random_)
    if random_.random() < 0.05:
        content = b"\xef\xbb\xbf" + content
    end = random_.choices(("", ".gz", ".bz2"), (8, 1, 1))[0]
    names = list(columns)
    selected = tuple(n for n in names if random_.random() < 0.7) or tuple(names[:1])
    selected = tuple(names) if random_.random() < 0.4 else selected
    if set(selected) == {"_corrupt_record"}:
        selected = tuple(names)
    cuts = tuple(sorted(random_.random() for _ in range(random_.choice((0, 0, 1, 3)))))
    return Case(
        format=kind,
        name=f"{seed}.{kind}{end}",
        content=_PACKS[end](content),
        options=options,
        columns=columns,
        selected=selected,
        cuts=() if end else cuts,
        time_zone=random_.choice(("UTC", "UTC", "Europe/Berlin", "America/New_York")),
    )


def _csv(random_: random.Random) -> tuple[bytes, dict[str, str], dict[str, str]]:
    columns = _columns(random_, CSV_TYPES)
    separator = random_.choice((",", ",", ",", ";", "|", "\t"))
    options: dict[str, str] = {} if separator == "," else {"sep": separator}
    quote = '"'
    for name, values, share in (
        ("header", ("true", "false"), 0.5),
        ("mode", ("PERMISSIVE", "DROPMALFORMED", "FAILFAST"), 0.3),
        ("escape", ('"', '"', "\\", ""), 0.3),
        ("quote", ("'", "", '"'), 0.2),
        ("nullValue", ("NA", "null", "NULL", "0"), 0.2),
        ("multiLine", ("true",), 0.05),
        ("encoding", ("UTF-8", "ISO-8859-1", "UTF-16LE"), 0.06),
        ("ignoreLeadingWhiteSpace", ("true",), 0.04),
        ("ignoreTrailingWhiteSpace", ("true",), 0.04),
        ("emptyValue", ("EMPTY",), 0.03),
        ("comment", ("#",), 0.04),
        ("dateFormat", ("dd.MM.yyyy", "yyyy-MM-dd"), 0.04),
        ("timestampFormat", ("dd.MM.yyyy HH:mm:ss",), 0.03),
        ("nanValue", ("nan",), 0.02),
        ("unescapedQuoteHandling", ("STOP_AT_CLOSING_QUOTE",), 0.03),
        ("lineSep", ("\n", ";"), 0.03),
        ("maxCharsPerColumn", ("5",), 0.01),
    ):
        if random_.random() < share:
            options[name] = random_.choice(values)
    quote = options.get("quote", quote)
    escape = options.get("escape", "\\")
    hostility = random_.choice((0.0, 0.0, 0.02, 0.2))
    ragged = random_.choice((0.0, 0.0, 0.02, 0.2))
    broken = random_.choice((0.0, 0.0, 0.0, 0.05))
    ending = random_.choice(("\n", "\n", "\r\n", "\r")) if hostility else "\n"

    def field(dtype: str) -> str:
        if random_.random() < broken:
            return random_.choice(_BROKEN_CSV)
        text = _value_text(random_, dtype, hostility)
        if random_.random() < 0.05:
            text = options.get("nullValue", "")
        needs = separator in text or random_.random() < 0.1
        if quote and needs:
            return f"{quote}{text.replace(quote, escape + quote)}{quote}"
        return text

    lines = []
    if options.get("header") == "true" or random_.random() < 0.05:
        lines.append(separator.join(columns))
    for _ in range(random_.choice((0, 1, 5, 30))):
        fields = [field(dtype) for name, dtype in columns.items() if name != "_corrupt_record"]
        if random_.random() < ragged:
            fields = fields[:-1] if random_.random() < 0.5 else [*fields, "more"]
        lines.append(separator.join(fields))
        if random_.random() < 0.03:
            lines.append(random_.choice(("", "", " ", "\t", "#comment", separator)))
    text = ending.join(lines) + random_.choice((ending, ending, ""))
    encoding = options.get("encoding", "UTF-8")
    content = text.encode(encoding, errors="replace")
    return _spoiled(random_, content), options, columns


def _json(random_: random.Random) -> tuple[bytes, dict[str, str], dict[str, str]]:
    columns = _columns(random_, JSON_TYPES)
    options: dict[str, str] = {}
    for name, values, share in (
        ("mode", ("PERMISSIVE", "DROPMALFORMED", "FAILFAST"), 0.3),
        ("multiLine", ("true",), 0.05),
        ("allowComments", ("true",), 0.03),
        ("allowSingleQuotes", ("false",), 0.03),
        ("primitivesAsString", ("true",), 0.03),
        ("dateFormat", ("dd.MM.yyyy",), 0.03),
        ("allowNonNumericNumbers", ("false",), 0.03),
    ):
        if random_.random() < share:
            options[name] = random_.choice(values)
    hostility = random_.choice((0.0, 0.0, 0.02, 0.2))
    broken = random_.choice((0.0, 0.0, 0.0, 0.05))
    lines = []
    for _ in range(random_.choice((0, 1, 5, 30))):
        members = [
            f"{json.dumps(_odd_name(random_, name, hostility))}: {_json_value(random_, dtype, hostility)}"
            for name, dtype in columns.items()
            if name != "_corrupt_record" and random_.random() < 0.9
        ]
        random_.shuffle(members)
        if random_.random() < hostility / 4 and members:
            members.append(random_.choice(members))
        line = "{" + ", ".join(members) + "}"
        if random_.random() < broken:
            line = random_.choice(
                (line[:-1], line + "}", "[" + line + "]", "[]", "{}", "null", "1", '"x"', line + line,
                 line.replace('"', "'"), line.replace(":", ""), "{a: 1}", "//x", line + ",", "[1]")
            )  # fmt: skip
        lines.append(line)
        if random_.random() < 0.03:
            lines.append(random_.choice(("", "", " ", "\t", "\x0b", "\u00a0")))
    ending = random_.choice(("\n", "\n", "\r\n", "\r")) if hostility else "\n"
    text = ending.join(lines) + random_.choice((ending, ""))
    return _spoiled(random_, text.encode(errors="surrogatepass")), options, columns


def _text(random_: random.Random) -> tuple[bytes, dict[str, str], dict[str, str]]:
    lines = [
        random_.choice((*_PLAIN["string"], *_ODD, *_BROKEN_CSV))
        for _ in range(random_.choice((0, 1, 5, 30)))
    ]
    options = random_.choice(({}, {}, {}, {"wholetext": "true"}, {"lineSep": "x"}))
    ending = random_.choice(("\n", "\n", "\r\n", "\r"))
    text = ending.join(lines) + random_.choice((ending, ""))
    return _spoiled(random_, text.encode()), dict(options), {"value": "string"}


def _columns(random_: random.Random, types: tuple[str, ...]) -> dict[str, str]:
    columns = {f"c{i}": random_.choice(types) for i in range(random_.choice((1, 2, 3, 5, 8)))}
    if random_.random() < 0.15:
        columns["_corrupt_record"] = "string"
    return columns


def _value_text(random_: random.Random, dtype: str, hostility: float) -> str:
    if random_.random() < hostility:
        return random_.choice(_ODD)
    return random_.choice(_PLAIN[dtype])


def _odd_name(random_: random.Random, name: str, hostility: float) -> str:
    return name.upper() if random_.random() < hostility / 4 else name


def _json_value(random_: random.Random, dtype: str, hostility: float) -> str:
    if random_.random() < 0.1:
        return "null"
    if random_.random() < hostility:
        return random_.choice(
            ("1", "-1", "1.5", "1e3", "1.0", "true", '"1"', '"true"', '""', '"abc"', "[]", "{}", "[1]",
             '{"x": 1}', "NaN", '"NaN"', '"Infinity"', "-0", "9223372036854775808", "1e400", "01", "+1",
             '"2024-02-30"', '"2024-01-31T10:11:12Z"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud83d"',
             '"a\\nb"', '"a\tb"', '"a\\/b"', '"\\x"', '{"x": {"z": [1, "a"]}}', "123456789012345678901",
             '[null, "a"]', '{"a": null}', '"\\u0000"', "0.1e1", '{"x": "1", "y": 2}', "1E5")
        )  # fmt: skip
    make: Callable[[], str] = {
        "array<bigint>": lambda: random_.choice(("[]", "[1, 2]", "[null]")),
        "array<string>": lambda: random_.choice(("[]", '["a", null]', '["ü"]')),
        "struct<x: int, y: string>": lambda: random_.choice(("{}", '{"x": 1, "y": "b"}', '{"y": null}')),
        "map<string, int>": lambda: random_.choice(("{}", '{"k": 1}', '{"k": null, "l": 2}')),
    }.get(dtype, lambda: "")  # fmt: skip
    if found := make():
        return found
    text = random_.choice(_PLAIN[dtype])
    if dtype == "boolean":
        return text.lower()
    if dtype in ("string", "date", "timestamp"):
        return json.dumps(text, ensure_ascii=random_.random() < 0.5)
    return f"0{text}" if text.startswith(".") else text


def _spoiled(random_: random.Random, content: bytes) -> bytes:
    """The file, seldom with bytes that are not UTF-8."""
    if random_.random() > 0.04:
        return content
    place = random_.randrange(len(content) + 1)
    return content[:place] + random_.choice(_BYTES) + content[place:]
