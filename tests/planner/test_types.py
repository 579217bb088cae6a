"""Types as texts."""

from __future__ import annotations

import pytest

from stagecoach.planner.types import INT, STRING, DataType, Field, map_of, parse_type, struct_of


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("STRUCT<Ab: INT, c: String>", struct_of((Field("Ab", INT), Field("c", STRING)))),
        ("struct<`B c`:int>", struct_of((Field("B c", INT),))),
        ("struct<`a:b`:int,`x,<y`: map<int,string>>", struct_of((Field("a:b", INT), Field("x,<y", map_of(INT, STRING))))),
        ("struct<`a``b`: int>", struct_of((Field("a`b", INT),))),
    ],
)  # fmt: skip
def test_names_of_members_are_those_of_the_text(text: str, dtype: DataType) -> None:
    assert parse_type(text) == dtype
