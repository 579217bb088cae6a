"""Random texts out of what SQL lexers disagree about."""

from __future__ import annotations

import random
from collections.abc import Iterator

SEPARATOR = "\ue000"
"""Between the texts of one call; in none of them."""

_MARKS = (
    "/*",
    "*/",
    "/*",
    "*/",
    "/*+",
    "--",
    "\n",
    "\r",
    "\r\n",
    "\\\n",
    "\\",
    "'",
    "'",
    '"',
    '"',
    "`",
    "`",
    "''",
    '""',
    "``",
    "\\'",
    '\\"',
    "\\\\",
    "r'",
    'R"',
    "x'",
    "X'1f'",
    "b'",
    "n'",
    "u&'",
    "//",
    "@",
    ";",
    ":",
    "::",
    "?",
    "|>",
    "->",
    "=>",
    "<=>",
    "!>",
    "/",
    "*",
    "+",
    "-",
    "/**/",
    "/*/",
    "*//*",
    "+*/",
    "--\\",
    "-- x\\\n",
)
_REFUSED = ("$$", "${", "}", "$", "{#", "#}", "{{", "{%", "#", "://")  # outside of quotes
_WORDS = (
    "select",
    "SELECT",
    "a",
    "b",
    "t",
    "from",
    "as",
    "transform",
    "using",
    "1",
    "1.5",
    "2e3",
    "3.",
    ".5",
    "1L",
    "R",
    "r",
    "x",
    "java_method",
    "reflect(",
    "(",
    ")",
    ",",
    ".",
    "broadcast(t)",
    "union all",
    "where",
    "and",
    "date",
    "interval",
    "identifier(",
)
_UNICODE = (
    "\u00a0",
    "\u2028",
    "\u2029",
    "\u3000",
    "\u200b",
    "\ufeff",
    "\u0085",
    "\u180e",
    "\x00",
    "\x0b",
    "\x1c",
    "\x1f",
    "\x7f",
    "é",
    "ſ",
    "ı",
    "K",
    "你",
    "٣",
    "\U0001f600",
    "\U00010400",
    "ǅ",
    "ª",
    "²",
)
_SPACES = (" ", " ", " ", "\t", "\n")


def random_texts(seed: int, count: int) -> Iterator[str]:
    """Yield texts of up to some 25 pieces; every third one looks like a query."""
    chance = random.Random(seed)
    for number in range(count):
        if number % 3 == 0:
            yield _query(chance)
        else:
            yield "".join(_piece(chance) for _ in range(chance.randint(1, 25)))


def _piece(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.45:
        return chance.choice(_MARKS)
    if kind < 0.7:
        return chance.choice(_SPACES)
    if kind < 0.96:
        return chance.choice(_WORDS)
    return chance.choice(_UNICODE if kind < 0.98 else _REFUSED)


def _query(chance: random.Random) -> str:
    """A SELECT with something odd in some of its gaps."""
    words = [
        "SELECT",
        "a",
        ",",
        chance.choice(("'x'", '"y"', "`b`", "r'\\'", "1.5", "'it''s'")),
        "AS",
        "c",
        "FROM",
        "t",
        "WHERE",
        "a",
        "=",
        "1",
    ]
    result = []
    for word in words:
        result.append(word)
        odd = chance.random() < 0.25
        gap = "".join(_piece(chance) for _ in range(chance.randint(1, 4))) if odd else ""
        result.append(f" {gap} " if chance.random() < 0.8 else gap)
    return "".join(result)
