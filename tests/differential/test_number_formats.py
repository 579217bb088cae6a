"""Numbers by random formats are written as Spark's TO_CHAR does."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from stagecoach.planner.text.number_formats import number_format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NUMBERS = ["0", "1", "-1", "12", "-12", "123", "-123", "1234", "-1234", "0.5", "-0.5", "12.30", "-12.30", "0.05", "-0.001", "999.99", "1234567.89", "-1234.5", "100", "0.10", "-0.00", "1000.00", "9", "99", "-10", "12345", "-100000", "98765432109876"]  # fmt: skip


def random_format(rng: random.Random) -> str:
    digit = rng.choice("09")
    whole = rng.choice(["9", "99", "9999", "0", "09", "90", "9099", "0909"])
    if rng.random() < 0.5:
        rest = (rng.choice(",G") + digit * rng.choice([3, 3, 1, 2]) for _ in range(rng.randint(1, 2)))  # fmt: skip
        whole = digit * rng.randint(1, 3) + "".join(rest)
    places = rng.choice(["", rng.choice(".D") + rng.choice(["9", "0", "99", "00", "909"])])
    sign, other = rng.choice(["", "S", "MI"]), rng.choice(["", "S", "MI", "PR"])
    return f"{sign}{rng.choice(['', '$'])}{whole}{places}{'' if sign else other}"


def test_random_formats(spark: SparkSession) -> None:
    rng = random.Random(5)
    formats = sorted({random_format(rng) for _ in range(300)})
    rows = spark.createDataFrame([(n,) for n in NUMBERS], "n STRING")
    number = "CAST(n AS DECIMAL(20,3))"
    wrong = []
    for start in range(0, len(formats), 60):
        part = formats[start : start + 60]
        calls = [f"to_char({number}, '{text}')" for text in part]
        for row in rows.selectExpr("n", *calls).collect():
            for text, theirs in zip(part, row[1:], strict=True):
                found = number_format(text)
                ours = None if found is None else found.text(row[0])
                if ours != theirs:
                    wrong.append(f"{row[0]} by {text}: Spark {theirs!r}, ours {ours!r}")
    assert len(formats) > 200
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", ["", "S", "$", ".", ".99", "9.", "9,099", "S9MI", "MI9PR", "9$", "L9", "9.9.9", "s9", "9,"])  # fmt: skip
def test_other_formats_are_left_to_spark(text: str) -> None:
    assert number_format(text) is None
