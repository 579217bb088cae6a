"""Which blocks of CSV are divided into fields here, and how; Spark reads all others."""

from __future__ import annotations

import pytest

from stagecoach.infra.formats.text_files.csv_blocks import CsvRules, UnclearTextError, split_fields

DEFAULT = CsvRules(separator=",", quote='"', escape="\\", num_columns=2, tells_empty=False)
DOUBLED = CsvRules(separator=",", quote='"', escape='"', num_columns=2, tells_empty=False)
UNQUOTED = CsvRules(separator=",", quote="", escape="\\", num_columns=2, tells_empty=False)
TOLD = CsvRules(separator=",", quote='"', escape="\\", num_columns=2, tells_empty=True)
SINGLE = CsvRules(separator=",", quote='"', escape="\\", num_columns=1, tells_empty=False)
TABS = CsvRules(separator="\t", quote='"', escape="\\", num_columns=2, tells_empty=False)


@pytest.mark.parametrize(
    ("rules", "block", "expected"),
    [
        (DEFAULT, "a,b\nc,d", [("a", "b"), ("c", "d")]),
        (DEFAULT, "a,b\r\n\r\n\nc,d\r\n", [("a", "b"), ("c", "d")]),
        (DEFAULT, ' a, b \n"x, y",\n,""\n', [(" a", " b "), ("x, y", ""), ("", "")]),
        (DEFAULT, "a\\,b\n", [("a\\", "b")]),
        (DEFAULT, '"a",b\\\n', [("a", "b\\")]),
        (DEFAULT, "'a',ü\n", [("'a'", "ü")]),
        (DEFAULT, "\ufeffa,b\n", [("\ufeffa", "b")]),
        (DOUBLED, '"a""b",""""\n"""","x"\n', [('a"b', '"'), ('"', "x")]),
        (UNQUOTED, '"a,b"\n', [('"a', 'b"')]),
        (TOLD, '"a",\n', [("a", "")]),
        (SINGLE, "a\n\n\nb\n", [("a",), ("b",)]),
        (TABS, "a\t\n\tb\n", [("a", ""), ("", "b")]),
        (DEFAULT, "\n\r\n", []),
    ],
)
def test_plain_fields(rules: CsvRules, block: str, expected: list[tuple[str, ...]]) -> None:
    found = split_fields(block.encode(), rules, range(rules.num_columns))
    assert list(zip(*found.to_pydict().values(), strict=True)) == expected


@pytest.mark.parametrize(
    ("rules", "block", "problem"),
    [
        (DEFAULT, b"a,b\nc\n", "not as the table's columns"),
        (DEFAULT, b"a,b,c\n", "not as the table's columns"),
        (DEFAULT, b"a,b\n  \n", "not as the table's columns"),
        (DEFAULT, b'a"b,c"d\n', "whole field"),
        (DEFAULT, b'"a" ,b\n', "whole field"),
        (DEFAULT, b' "a",b\n', "whole field"),
        (DEFAULT, b'"x,"y"z",b\n', "whole field"),
        (DEFAULT, b'"a""b",c\n', "whole field"),
        (DEFAULT, b'"a\\b",c\n', "an escape"),
        (DEFAULT, b'"a\\",b",c\n', "not closed"),
        (DEFAULT, b'"a,b\n', "not closed"),
        (DEFAULT, b'"a\nb",c\n', "the end of a line"),
        (DOUBLED, b'""a,b"",c\n', "whole field"),
        (DOUBLED, b'a""b,c\n', "whole field"),
        (TOLD, b'"",a\n', "empty field"),
        (DEFAULT, b"a,b\rc,d\n", "carriage return"),
        (DEFAULT, b"a,\x00\n", "NUL"),
        (DEFAULT, b"a,\xff\n", "UTF-8"),
        (DEFAULT, b"a,\xed\xa0\x80\n", "UTF-8"),
        (SINGLE, b"a\n \nb\n", "blanks only"),
        (SINGLE, b"\x01\r\n", "blanks only"),
        (TABS, b"a\tb\n\t\n", "blanks only"),
    ],
)
def test_what_is_left_to_spark(rules: CsvRules, block: bytes, problem: str) -> None:
    with pytest.raises(UnclearTextError, match=problem):
        split_fields(block, rules, range(rules.num_columns))


def test_fields_that_are_not_needed_are_not_returned() -> None:
    found = split_fields(b"a,b\nc,d\n", DEFAULT, [1])
    assert found.to_pydict() == {"1": ["b", "d"]}
