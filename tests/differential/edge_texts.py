"""A second edge table `e`: texts that look like numbers, dates, URLs and formats, and odd bytes.

All random choices have fixed seeds.
"""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.differential.edge_tables import EdgeTables

NUMBERS = [
    "0", "-0", "+7", "12", " 12 ", "\t12\n", "1 2", "", " ", "-", "+", ".", "1.", ".5", "-.5", "+.5e1", "1e2", "1E+2", "1e-2", "1e", "e5", "1.5", "-2.5", "0.5", "1.25", "1.35", "99.995",
    "-99.994", "999.99", "1000", "127", "128", "-128", "-129", "32767", "32768", "-32769", "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "99999999999999999999999999999999999999", "100000000000000000000000000000000000000", "0.000000000000000000000000000000000000001",
    "1e400", "-1e400", "1e-400", "4.9e-324", "2e-324", "1.7976931348623157e308", "1.7976931348623159e308", "3.4028235e38", "3.4028236e38", "3.5e38", "1e-45", "7e-46", "0.1", "0.30000000000000004", "16777217", "9007199254740993",
    "NaN", "nan", "-NaN", "+nan", "Inf", "inf", "-inf", "+Infinity", "infinity", "-INFINITY", "infinit", "1d", "1D", "1.5f", "1F", "1L", "0x1A", "0x1p3", "1_000", "1,000", "$12", "٣", "１２", "\u00a012", "12\u00a0", "\x0012", "12\x00",
    "12\x7f", "\x0b12\x0c", "\x1c12\x1f", "true", "TRUE", " t ", "T", "yes", "Y", "y", "on", "1", "false", "F", "no", "N", "n", "off", "tru", "truee", "\x00true", "00012", "+00012", "--5", "+-5", "5-", "1e5d", "1.e3", "0e0", "-0.0", "1e38", "1e37",
]  # fmt: skip
DAYS = [
    "2024-02-29", "2023-02-29", "2024-2-9", "2024-02", "2024-2", "2024", " 2024-02-29 ", "\t2024-02-29\n", "2024-02-29T10:11:12", "2024-02-29 10:11:12", "2024-02-29 junk", "2024-02-29Tx", "2024-02-29x",
    "2024-02-", "2024-", "2024-13-01", "2024-00-10", "2024-12-00", "2024-12-32", "0000-01-01", "0001-01-01", "0000", "9999-12-31", "10000-01-01", "+2024-02-29", "-0001-01-01", "-2024-02-29", "99999-1-1", "12345", "1234567-01-01",
    "12345678-01-01", "24-02-29", "024-02-29", "infinity", "-infinity", "epoch", "now", "today", "2024/02/29", "20240229", "2024-02-29 ", "2024-02 x", "2024 x", "1582-10-10", "1500-02-29", "2024-002-29", "2024-02-029", "", " ", "2024-02-29BC",
    "2024-02-29 (BC)", "２０２４-02-29", "10:11:12", "T10:11:12", "2024-02-29T", "2024-02-29\x00", "2024-6-31", "2024-06-30 24:00:00", "2024-02-29+01:00", "2024-02-29Z",
]  # fmt: skip
TEXTS = [
    "", " ", "a", "A", "abc", "ABC", "Hello World", "hello  world", "straße", "STRASSE", "ŒUVRE", "œuvre", "ﬁn", "ǆ", "ǅ", "ŉ", "İstanbul", "ıi", "ΣΑΣ", "Σ", "ας", "ΌΣΟΣ", "Ünïcödé", "ÀÉ", "日本語", "e\u0301", "a\u0308b", "😀x", "\U00010400", "\U00010428", "ᾳ", "ΐ", "ა", "Ა", "Ꭰ", "ꭰ", "\u1e9e", "ꟊ",
    "a\nb", "line\n", "\nline", "a\r\nb", "\u2028", "\u0085", " lead", "trail ", "  both  ", "tab\t", "\u00a0nbsp\u00a0", "\u3000wide\u3000", "it's", 'say "x"', "back\\slash", "100%", "under_score", "%", "_", "\\%", "a%b_c", "\\", "\\\\", "a.b.c", "a,b,,c,", ",", "aXbXc", "aaa", "aaaa", "abab",
    "{0}", "{type}", "$1", "$", "^a$", "(a)", "[a]", "a+b", "a*b?", "x|y", "z\x00z", "\x00", "\x7f", "\ufeffbom", "NULL", "0123456789", "Robert", "Rupert", "Rubin", "Ashcraft", "Tymczak", "Pfister", "Honeyman", "4111111111111111", "4111111111111112", "79927398713", "378282246310006", "1234 5678",
    "YQ==", "YWI=", "YWJj", "YQ", "Y Q = =", "YWJj\nYWJj", "!!!!", "4a4B", "4", "4G", "zz", "61C262", "FF", "7f", "Iron-Man", "iron man", "O'Neil mc-donald", "ab\tcd ef", "AbC dEF", "dž", "ß", "ÿ", "µ", "ſ", "K", "Å", "\u0345", "ﬀ", "ŸÿŸ",
    "%41%42", "a+b%20c", "%zz", "%", "%4", "%C3%A9", "%FF", "a b&c=d/e?f#g~h*i!j'(k)", "é日😀", "http://spark.apache.org/path?query=1", "https://user:pa@Host.com:8080/p/a/t/h.html?q=1&r=a%20b&q=2#frag", "http://host", "http://host/", "http://host?x=y", "http://host#f", "ftp://a.b/c;d",
    "mailto:x@y.z", "/relative/path?x=1", "http://ho st/", "http://host/a b", "http://[::1]:80/x", "//host/path", "http://host/?a=b&c", "http://host/%zz", "http://é.com/", "file:///etc/x", "http://host:99999/x", "http://user@host:/x?", "HTTP://HOST/?=1&a=&b", "urn:isbn:123", "http:///x", "http://a_b/c",
]  # fmt: skip
BLOBS = [b"", b"a", b"abc", b"\x00", b"\x00\x7f", b"\x80", b"\xff\xfe", b"\xc3\xa9", b"\xc3", b"a\xc2b", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", bytes(range(64))]  # fmt: skip
DOUBLES = [
    0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 0.49999999999999994, 1.005, 2.675, 1.0, -1.0, 1e-3, 9.99e-4, 1e7, 9999999.0, 1e6, 123.456, 1e15, 1e16, 1e17, 1e18, 9.2e18, 9.223372036854775807e18, -9.223372036854775808e18, 1e19, 1e20, 1e22, 1e23, 2e23, 1e38,
    1e39, 3.4e38, 3.5e38, 3.4028235677973366e38, 3.4028235677973362e38, 1e300, 1.7e308, 5e-324, 1e-7, 1e-10, 1e-18, 1e-19, 1e-20, 0.1, 0.3, 1 / 3, 2 / 3, math.pi, math.e, math.pi / 2, 2.0**53, 2.0**53 + 2, 2.0**63, math.inf, -math.inf, math.nan, 20.0, 21.0, -3.7, 2147483647.5, -2147483648.5, 127.9, -128.9, 128.0,
    32767.9, 710.0, 709.78, -745.0, 0.9999999999999999, 1.0000000000000002, 99.995, 1000.0, 8.0, 1024.0,
]  # fmt: skip

SCHEMA = pa.schema(
    [
        ("id", pa.int32()), ("s", pa.string()), ("t", pa.string()), ("num", pa.string()), ("day", pa.string()), ("bin", pa.binary()), ("bim", pa.binary()), ("i", pa.int32()), ("n", pa.int32()), ("l", pa.int64()), ("si", pa.int16()), ("ti", pa.int8()),
        ("d", pa.float64()), ("d2", pa.float64()), ("f", pa.float32()), ("d103", pa.decimal128(10, 3)), ("d22", pa.decimal128(2, 2)), ("d180", pa.decimal128(18, 0)), ("d3818", pa.decimal128(38, 18)), ("d3838", pa.decimal128(38, 38)), ("b", pa.bool_()),
    ]
)  # fmt: skip


def write_edge_texts(folder: Path) -> EdgeTables:
    """The table, named `e`, in one file."""
    path = folder / "e" / "part-0.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(_rows(), schema=SCHEMA), path, row_group_size=64)
    return EdgeTables(folder, {"e": (str(path),)}, {"e": SCHEMA})


def _rows() -> list[dict[str, Any]]:
    rng = random.Random(43)
    count = max(len(NUMBERS), len(DAYS), len(TEXTS), len(DOUBLES)) + 40
    letters = "abcABC 12_%.-ßéÉ日😀"
    rows: list[dict[str, Any]] = [{"id": 0}]
    cycles = {
        name: itertools.cycle(pool)
        for name, pool in {
            "s": TEXTS,
            "num": NUMBERS,
            "day": DAYS,
            "bin": BLOBS,
            "d": DOUBLES,
        }.items()
    }
    for number in range(1, count):
        row: dict[str, Any] = {"id": number, **{name: next(pool) for name, pool in cycles.items()}}
        word = "".join(rng.choice(letters) for _ in range(rng.randint(0, 7)))
        row["t"] = rng.choice([rng.choice(TEXTS), word, word, "a", "b", ""])
        row["bim"] = rng.choice([*BLOBS, rng.randbytes(rng.randint(0, 9))])
        row["i"] = rng.choice(
            [
                0,
                1,
                -1,
                2,
                5,
                2**31 - 1,
                -(2**31),
                rng.randint(-999, 999),
                rng.randint(-(2**31), 2**31 - 1),
            ]
        )
        row["n"] = rng.choice([0, 1, 2, 3, 4, 5, 7, -1, -2, -3, -7, 10, 31, 32, 33, 63, 64, 65])
        row["l"] = rng.choice(
            [
                0,
                1,
                -1,
                2**63 - 1,
                -(2**63),
                rng.randint(-999, 999),
                rng.randint(-(2**63), 2**63 - 1),
                255,
                256,
                10**18,
            ]
        )
        row["si"] = rng.choice([0, 1, -1, 2**15 - 1, -(2**15), rng.randint(-999, 999)])
        row["ti"] = rng.choice([0, 1, -1, 127, -128, rng.randint(-99, 99)])
        row["d2"] = rng.choice(
            [
                *DOUBLES,
                rng.uniform(-10, 10),
                rng.uniform(-1, 1),
                rng.gauss(0, 1e5),
                float(rng.randint(-20, 20)),
            ]
        )
        row["f"] = rng.choice(
            [
                0.0,
                -0.0,
                0.5,
                1.5,
                2.5,
                -2.5,
                0.1,
                1.1,
                16777217.0,
                3.4e38,
                1e-45,
                1e7,
                1e-3,
                math.inf,
                -math.inf,
                math.nan,
                rng.uniform(-100, 100),
            ]
        )
        row["d103"] = Decimal(
            rng.choice(
                [
                    0,
                    1,
                    -1,
                    5,
                    15,
                    500,
                    1500,
                    2500,
                    -2500,
                    12345,
                    10**10 - 1,
                    -(10**10) + 1,
                    rng.randint(-(10**7), 10**7),
                ]
            )
        ).scaleb(-3)
        row["d22"] = Decimal(rng.randint(-99, 99)).scaleb(-2)
        row["d180"] = Decimal(
            rng.choice([0, 1, -5, 15, 25, 10**18 - 1, -(10**18) + 1, rng.randint(-(10**9), 10**9)])
        )
        row["d3818"] = Decimal(
            rng.choice(
                [
                    "0",
                    "0.000000000000000001",
                    "-0.000001",
                    "1.5",
                    "99999999999999999999.5",
                    "0.0000001",
                    "123456789.123456789",
                ]
            )
        )
        row["d3838"] = Decimal(
            rng.choice(["0", "0.1", "-0.05", "0.00000000000000000000000000000000000001"])
        )
        row["b"] = rng.choice([True, False])
        rows.append({k: (None if k != "id" and rng.random() < 0.04 else v) for k, v in row.items()})
    return rows
