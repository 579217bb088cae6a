"""What a text is to Spark's lexer and to ours, and where the two differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.lexers.texts import SEPARATOR
from stagecoach.infra.spark.guard.jvm_code import java_object
from stagecoach.planner.errors import SqlError
from stagecoach.planner.syntax.parse import parse_query
from stagecoach.planner.syntax.text import sent_text
from stagecoach.planner.syntax.tokens import HIDDEN, tokenize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HINTS = ("HENT_START", "HENT_END")
_TEXTS = ("STRING_LITERAL", "DOUBLEQUOTED_STRING")
_BATCH = 5_000


@dataclass(frozen=True)
class Difference:
    """A text that Spark reads in another way than we do.

    Attributes:
        text: The text.
        what: What differs.
    """

    text: str
    what: str


@dataclass
class Counts:
    """What became of the texts.

    Attributes:
        texts: How many there were.
        refused: Texts that are refused.
        parsed: Texts that are queries to us; Spark's plans of them were compared, too.
    """

    texts: int = 0
    refused: int = 0
    parsed: int = 0


@dataclass(frozen=True)
class _SparkToken:
    kind: str
    hidden: bool
    start: int
    end: int


class LexerComparison:
    """Compares texts with the lexer and the parser of a classic Spark session.

    Args:
        spark: The session.
    """

    def __init__(self, spark: SparkSession) -> None:
        session: Any = spark._jsparkSession
        spark.conf.set("spark.sql.variable.substitute", "false")
        self._lexer = java_object(
            spark.sparkContext._jvm,
            "benchmarks.lexers",
            "SparkLexer",
            session.sessionState().sqlParser(),
        )
        self.counts = Counts()

    def differences(self, texts: Sequence[str]) -> Iterator[Difference]:
        """Yield every disagreement about a text that is not refused."""
        for start in range(0, len(texts), _BATCH):
            yield from self._batch(texts[start : start + _BATCH])

    def _batch(self, texts: Sequence[str]) -> Iterator[Difference]:
        self.counts.texts += len(texts)
        accepted = [(text, sent) for text in texts if (sent := _sent(text)) is not None]
        self.counts.refused += len(texts) - len(accepted)
        written = self._lex([text for text, _ in accepted])
        received = self._lex([sent for _, sent in accepted])
        for (text, sent), before, after in zip(accepted, written, received, strict=True):
            if what := _tokens_differ(text, before) or _sent_differs(text, sent, before, after):
                yield Difference(text, what)
        queries = [(text, sent) for text, sent in accepted if _is_query(text)]
        self.counts.parsed += len(queries)
        plans = zip(
            queries,
            self._parse([text for text, _ in queries]),
            self._parse([sent for _, sent in queries]),
            strict=True,
        )
        for (text, sent), before_plan, after_plan in plans:
            # A hint that Spark ignores is in one of the plans only.
            if before_plan != after_plan and "/*+" not in text:
                yield Difference(text, f"the plan of {sent!r} is another one")

    def _lex(self, texts: Sequence[str]) -> list[list[_SparkToken]]:
        if not texts:
            return []
        lines = self._lexer.lex(SEPARATOR.join(texts), SEPARATOR).split("\n")[:-1]
        return [[_token(part) for part in line.split(";") if " " in part] for line in lines]

    def _parse(self, texts: Sequence[str]) -> list[str]:
        if not texts:
            return []
        plans: str = self._lexer.parse(SEPARATOR.join(texts), SEPARATOR)
        return plans.split(SEPARATOR)[:-1]


def _token(text: str) -> _SparkToken:
    kind, channel, start, stop = text.split()
    return _SparkToken(kind, channel != "0", int(start), int(stop) + 1)


def _sent(text: str) -> str | None:
    try:
        return sent_text(text).text
    except SqlError:
        return None


def _is_query(text: str) -> bool:
    try:
        parse_query(text)
    except SqlError:
        return False
    return True


def _tokens_differ(text: str, tokens: Sequence[_SparkToken]) -> str | None:
    """What differs between Spark's tokens of a text and ours; None if nothing that counts does."""
    ours = list(tokenize(text))
    pairs: tuple[tuple[str, set[Any], set[Any]], ...] = (
        (
            "hidden characters",
            _places(t for t in ours if t.kind in HIDDEN),
            _places(t for t in tokens if t.hidden),
        ),
        (
            "string literals",
            _spans(t for t in ours if t.kind == "text"),
            _spans(t for t in tokens if t.kind in _TEXTS),
        ),
        (
            "quoted names",
            _spans(t for t in ours if t.kind == "name"),
            _spans(t for t in tokens if t.kind == "BACKQUOTED_IDENTIFIER"),
        ),
        (
            "hints",
            _spans(t for t in ours if t.kind in ("hint_start", "hint_end")),
            _spans(t for t in tokens if t.kind in _HINTS),
        ),
        ("unknown characters", set(), _spans(t for t in tokens if t.kind == "UNRECOGNIZED")),
    )
    return next((f"{what}: {a} and {b}" for what, a, b in pairs if a != b), None)


def _sent_differs(
    text: str, sent: str, before: Sequence[_SparkToken], after: Sequence[_SparkToken]
) -> str | None:
    """What differs between the tokens of a text and those of what is sent, hints apart."""
    left, right = (
        [(t.kind, source[t.start : t.end]) for t in _without_hints(tokens)]
        for source, tokens in ((text, before), (sent, after))
    )
    if left != right:
        return f"what is sent has other tokens: {sent!r}"
    if any(t.hidden and t.kind != "WS" for t in after):
        return f"what is sent has a comment: {sent!r}"
    return None


def _without_hints(tokens: Sequence[_SparkToken]) -> Iterator[_SparkToken]:
    inside = False
    for token in tokens:
        if token.kind in _HINTS:
            inside = token.kind == "HENT_START"
        elif not inside and not token.hidden:
            yield token


def _places(tokens: Iterator[Any]) -> set[int]:
    return {place for token in tokens for place in range(token.start, token.end)}


def _spans(tokens: Iterator[Any]) -> set[tuple[int, int]]:
    return {(token.start, token.end) for token in tokens}
