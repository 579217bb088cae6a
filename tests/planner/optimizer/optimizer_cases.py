"""Reads and writes the rule fixtures, tests/fixtures/optimizer/<rule>.sql.

A file holds cases, in the style of sqlglot's optimizer fixtures:

    -- what the case shows; a title that starts with "never" shows where the rule must not act
    SELECT …;
    before
      <the plan that the rule is given: after all rules before it>
    after
      <the plan that it makes>
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "fixtures" / "optimizer"
_CASE = re.compile(
    r"-- (?P<title>.+)\n(?P<sql>[^;]+);\n"
    r"(?:before\n(?P<before>(?:  .*\n)+))?(?:after\n(?P<after>(?:  .*\n)+))?"
)


@dataclass(frozen=True)
class Case:
    rule: str
    title: str
    sql: str
    before: str = ""
    after: str = ""

    @property
    def acts(self) -> bool:
        return not self.title.startswith("never")


def read_cases(rule: str) -> list[Case]:
    text = (FOLDER / f"{rule}.sql").read_text(encoding="utf-8")
    cases = []
    for block in text.strip().split("\n\n"):
        match = _CASE.fullmatch(block + "\n")
        assert match, f"{rule}.sql holds a damaged case: {block[:60]}"
        before, after = (_dedent(match[part] or "") for part in ("before", "after"))
        cases.append(Case(rule, match["title"], match["sql"], before, after))
    return cases


def write_cases(rule: str, cases: list[Case]) -> None:
    blocks = [
        f"-- {c.title}\n{c.sql};\nbefore\n{_indent(c.before)}\nafter\n{_indent(c.after)}\n"
        for c in cases
    ]
    (FOLDER / f"{rule}.sql").write_text("\n".join(blocks), encoding="utf-8")


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _dedent(text: str) -> str:
    return "\n".join(line[2:] for line in text.splitlines())
