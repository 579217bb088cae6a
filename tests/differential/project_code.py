"""Functions of a project, each as a catalog declares it and as plain Spark registers it.

The module is copied into the folder of a test's catalog; plain Spark gets the functions by value.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow.compute as pc


def shout(text, times):
    return None if text is None or times is None else text.upper() + "!" * times


def half(amount):
    return None if amount is None else amount / 2


def day_after(day):
    return None if day is None else day + timedelta(days=1)


def later(moment):
    return None if moment is None else moment + timedelta(hours=1, microseconds=1)


def total(numbers):
    return None if numbers is None else sum(n for n in numbers if n is not None)


def words(text):
    return None if text is None else text.split()


def label(pair):
    return None if pair is None else f"{pair.a}/{pair['b']}"


def pair_of(number, text):
    return (number, text) if number is None or number % 2 else {"a": number, "b": text}


def tally(text):
    return None if text is None else {letter: text.count(letter) for letter in sorted(set(text))}


def worth(prices, key):
    return None if prices is None else prices.get(key)


def is_long(text):
    return text is not None and len(text) > 3


def mirrored(data):
    return None if data is None else bytes(data)[::-1]


def kind_of(number):
    return type(number).__name__


def clock(moment):
    return None if moment is None else str(moment)


def one(_):
    return 1


def text(_):
    return "1.5"


def truth(number):
    return number == 1


def inverse(number):
    return 100 // number


def pandas_sum(left, right):
    return left + right


def pandas_upper(text):
    return text.str.upper()


def pandas_swap(pair):
    return pair.rename(columns={"a": "x", "b": "y"})


def pandas_noon(moment):
    return moment.dt.normalize() + timedelta(hours=12)


def arrow_negate(number):
    return pc.negate(number)


def arrow_join(left, right):
    return pc.binary_join_element_wise(left, right, "-")


def arrow_or_zero(number):
    return pc.fill_null(number, 0)


DECLARED = {
    "shout": (shout, "scalar", ["STRING", "INT"], "STRING"),
    "half": (half, "scalar", ["DECIMAL(10,2)"], "DECIMAL(12,3)"),
    "day_after": (day_after, "scalar", ["DATE"], "DATE"),
    "later": (later, "scalar", ["TIMESTAMP"], "TIMESTAMP"),
    "later_ntz": (later, "scalar", ["TIMESTAMP_NTZ"], "TIMESTAMP_NTZ"),
    "total": (total, "scalar", ["ARRAY<INT>"], "BIGINT"),
    "words": (words, "scalar", ["STRING"], "ARRAY<STRING>"),
    "label": (label, "scalar", ["STRUCT<a: INT, b: STRING>"], "STRING"),
    "pair_of": (pair_of, "scalar", ["INT", "STRING"], "STRUCT<a: INT, b: STRING>"),
    "tally": (tally, "scalar", ["STRING"], "MAP<STRING, INT>"),
    "worth": (worth, "scalar", ["MAP<STRING, INT>", "STRING"], "INT"),
    "is_long": (is_long, "scalar", ["STRING"], "BOOLEAN"),
    "mirrored": (mirrored, "scalar", ["BINARY"], "BINARY"),
    "kind_of": (kind_of, "scalar", ["DOUBLE"], "STRING"),
    "clock": (clock, "scalar", ["TIMESTAMP"], "STRING"),
    "one_as_text": (one, "scalar", ["INT"], "STRING"),
    "text_as_number": (text, "scalar", ["INT"], "DOUBLE"),
    "truth": (truth, "scalar", ["INT"], "STRING"),
    "odd_half": (half, "scalar", ["DECIMAL(10,2)"], "DECIMAL(12,2)"),
    "inverse": (inverse, "scalar", ["INT"], "INT"),
    "pandas_sum": (pandas_sum, "pandas", ["DOUBLE", "DOUBLE"], "DOUBLE"),
    "pandas_upper": (pandas_upper, "pandas", ["STRING"], "STRING"),
    "pandas_swap": (pandas_swap, "pandas", ["STRUCT<a: INT, b: STRING>"], "STRUCT<x: INT, y: STRING>"),
    "pandas_noon": (pandas_noon, "pandas", ["TIMESTAMP"], "TIMESTAMP"),
    "arrow_negate": (arrow_negate, "arrow", ["BIGINT"], "BIGINT"),
    "arrow_join": (arrow_join, "arrow", ["STRING", "STRING"], "STRING"),
    "arrow_or_zero": (arrow_or_zero, "arrow", ["DOUBLE"], "DOUBLE"),
}  # fmt: skip
