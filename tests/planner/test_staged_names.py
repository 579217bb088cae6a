"""`t@staged` is the table at the version that is staged, in plans and in Spark's text."""

from __future__ import annotations

import pytest
from sqlglot import exp

from stagecoach.planner.syntax.parse import read_query
from stagecoach.planner.syntax.parsed_query import full_name
from stagecoach.planner.syntax.view_names import with_view_names
from stagecoach.planner.versioned_names import TableVersion, plain_name, split_name


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("t@staged", "staged"),
        ("t@STAGED-0a1b", "STAGED-0a1b"),
        ("s.t@staged-0a1b", "staged-0a1b"),
        ("t", None),
        ("t@stage", None),
        ("t@staged-xyz", None),
    ],
)
def test_names(name: str, version: str | None) -> None:
    own, found = split_name(plain_name(name))
    if version is None:
        assert (own, found) == (name, None)
    else:
        assert found is not None
        assert (own, found.kind) == (name.split("@")[0], "version")
        assert found == TableVersion("version", version)


def test_both_spellings_are_one_table_and_one_view() -> None:
    texts = [f"SELECT x.n FROM {name} x" for name in ("`t@staged`", "t VERSION AS OF 'staged'")]
    queries = [read_query(text) for text in texts]
    names = {full_name(table) for query in queries for table in query.tree.find_all(exp.Table)}
    assert names == {"t@version=staged"}
    assert {with_view_names(query) for query in queries} == {"SELECT x.n FROM `t@version=staged` x"}
