"""Rows of lines of CSV. All random choices have a fixed seed."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

LINES = [
    "", ",", "1", "x,1", "x,1,", "x,1,2.5,true", "x,1,2.5,true,more,fields", ' x , 1 , 2.5 , true ', '"x",1,"2.5","true"', '"a,b",2', '"",1,"",false', '"x""y",1', '"x\\"y",1', '"x\\y",1', 'x\\y,1', 'x"y,1', '"x"y,1', '"x" ,1', ' "x",1', '"x', 'x,"1', '""', '"', '"""', "x\ny,1", '"x\ny",1', "x\r,1",
    "\n", "x\x00,1", "\x00", "\ufeffx,1", "#x,1", "日本,1,1e5,TRUE", "ß,-1,-1.5,FALSE", "x,+1,+.5,t", "x,007,1.,yes", "x,2147483648,1e400,1", "x,-2147483649,NaN,0", "x,1.0,Infinity,true ", "x, 1,Inf,", "x,1 ,-Inf,", "x,1L,1d,", "x,١,1f,", "x,0x1,0x1p3,", "x,a,abc,abc", "x,--1,--1,", "NA,NA,NA,NA", '"NA","NA","NA","NA"',
    "null,null,null,null", "x;1;2.5;true", "x\t1\t2.5\ttrue", "x|1|2.5|true", "'x',1,'2.5'", "'a,b',2", "''", "x,'y''z'", '/"x/",1', '"x/"y",1', "2024-02-29,2024-02-29 10:11:12,2024-02-29T10:11:12.5,2024-02-29", "2023-02-29,2024-02-29 25:00:00,2024-02-29T10:11:12Z,2024-2-9", "0000-01-01,2024-02-29,2024-02,2024",
    "0001-01-01,0001-01-01 00:00:00,9999-12-31T23:59:59.999999,9999-12-31", "127,32767,9223372036854775807,12345678.90", "128,32768,9223372036854775808,123456789.5", "-128,-32768,-9223372036854775808,-0.005", "1,2,3,1e2", "0.5,1,1,1.234", ".5,1,1,.5", "1582-10-10,1500-01-01 00:00:00,1969-12-31T23:59:59.999999,1900-01-01",
]  # fmt: skip
WORDS = [
    "", " ", "a", " a ", "a b", "\ta\n", "#a", " #a", "a#", '"', '""', 'a"b', '"a"', "'", "a'b", "'a'", "\\", "\\\\", "a\\b", 'a\\"b', "a\\", "/", "a/b", "a,b", ",", ";", "a;b", "|", "a|b", "a\tb", "\t", "a\nb", "\n", "a\rb", "\r", "a\r\nb", "\x00", "a\x00b", "\x1f", "\x7f", "\u00a0", "\u00a0a\u00a0", "\u3000", "日本", "ß", "😀", "NA", "null",
    "\ufeff", "{0}", "{type}", "a:b", "~", "^", "%", "1", "-5", "1.5", "true", "TRUE", "tRuE", "false", "falſe", "2024-02-29", "1e5", "1.5e3", "N", "n/a", "I", "inf", "+", "-", ".", "e5", "12 34", "1_000", "1,5", "$5", "12:30", "(x)", "*", "x=1", "ıi", "K", "9.99", "12345678.999", "1e-2", "0", "-0", "-0.0", "00", "+1", "T", "Z", "2024", "today",
]  # fmt: skip
SCHEMA = pa.schema(
    [
        ("id", pa.int32()), ("line", pa.string()), ("odd", pa.string()), ("word", pa.string()), ("num", pa.int64()), ("dbl", pa.float64()),
        ("dec", pa.decimal128(10, 2)), ("day", pa.date32()), ("moment", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip


def csv_rows() -> list[dict[str, Any]]:
    """Rows of lines and of words; row 0 is all NULL."""
    rng = random.Random(11)
    rows: list[dict[str, Any]] = [{"id": 0}]
    for number in range(1, 240):
        letters = "".join(rng.choice("ab,;\"'\\/# \n\r\t1.|x日") for _ in range(rng.randint(0, 8)))
        fields = [rng.choice(["", "x", "1", "-7", "2.5", "true", '"a,b"', '""', "NA", '"q"', "日"]) for _ in range(rng.randint(1, 5))]  # fmt: skip
        row = {
            "id": number,
            "line": LINES[number - 1] if number <= len(LINES) else ",".join(fields),
            "odd": rng.choice([letters, letters, rng.choice(LINES), rng.choice(WORDS)]),
            "word": WORDS[number - 1] if number <= len(WORDS) else letters,
            "num": rng.choice([0, 1, -1, 2**63 - 1, -(2**63), rng.randint(-999, 999)]) if number % 3 else rng.randint(-9, 9),
            "dbl": rng.choice([0.0, -0.0, 1.5, -2.25, 1e10, 0.1, float("nan"), float("inf"), float("-inf"), rng.uniform(-9, 9)]),
            "dec": Decimal(rng.randint(-(10**10) + 1, 10**10 - 1)).scaleb(-2),
            "day": dt.date(2000, 1, 1) + dt.timedelta(rng.randint(-9999, 9999)),
            "moment": dt.datetime(2000, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=rng.randint(-(10**15), 10**15)),
        }  # fmt: skip
        rows.append({k: None if k != "id" and rng.random() < 0.05 else v for k, v in row.items()})
    return rows
