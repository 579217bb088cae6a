"""Parse operators as tightly as Spark binds them.

sqlglot binds `a = b IN (c)` as `a = (b IN (c))`, Spark as `(a = b) IN (c)`. In Spark's grammar a
condition is a value with at most one predicate (IS, IN, BETWEEN, LIKE, RLIKE) behind it, and
comparisons are operators of values, all of one level.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType


class UnsignedRightShift(exp.Expression, exp.Binary):
    """`a >>> b`: bits moved to the right, zeros from the left."""


# sqlglot has no token for `>>>`; this one means nothing else in Spark.
UNSIGNED_SHIFT = TokenType.HASH_DASH

_COMPARISONS = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
_SHIFTS = {TokenType.LT: exp.BitwiseLeftShift, TokenType.GT: exp.BitwiseRightShift}
_SHIFT = 4


def _parse_pattern(kind: type[exp.Binary]) -> Any:
    """A parser of what is behind LIKE and its like."""

    def parse(parser: Any, this: exp.Expr | None) -> exp.Expr | None:
        pattern = parser._parse_comparison()
        found: exp.Expr | None = parser._parse_escape(
            parser.expression(kind(this=this, expression=pattern))
        )
        return found

    return parse


class SparkOperators(SparkParser):
    """sqlglot's parser with the operators of Spark's grammar."""

    RANGE_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **SparkParser.RANGE_PARSERS,
        TokenType.LIKE: _parse_pattern(exp.Like),
        TokenType.ILIKE: _parse_pattern(exp.ILike),
        TokenType.RLIKE: _parse_pattern(exp.RegexpLike),
    }

    # How tightly they bind, above comparisons.
    BITS: ClassVar[dict[TokenType, tuple[int, type[exp.Binary]]]] = {
        TokenType.PIPE: (1, exp.BitwiseOr),
        TokenType.CARET: (2, exp.BitwiseXor),
        TokenType.AMP: (3, exp.BitwiseAnd),
        UNSIGNED_SHIFT: (_SHIFT, UnsignedRightShift),
    }

    TERM: ClassVar[dict[TokenType, Any]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        """A condition without AND and OR."""
        if self._match(TokenType.NOT, advance=False):
            return self._parse_unary()
        return self._parse_range(self._parse_comparison())

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        """A value, and the one predicate that may be behind it."""
        this = this or self._parse_comparison()
        is_negated = self._match(TokenType.NOT)
        if not self._match_set(self.RANGE_PARSERS):
            if is_negated:
                self._retreat(self._index - 1)
            return this
        found: exp.Expr | None = self.RANGE_PARSERS[self._prev.token_type](self, this)
        return self._negate_range(found) if is_negated else found

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr | None:
        this = this or self._parse_bitwise()
        while self._match_set(_COMPARISONS):
            kind = _COMPARISONS[self._prev.token_type]
            if self._match(TokenType.NOT, advance=False):
                self.raise_error("Expecting a value")
            this = self._build_predicate(kind, this, self._parse_bitwise())
        return this

    def _parse_bitwise(self, weakest: int = 0) -> exp.Expr | None:
        """A value without comparisons, of operators that bind more tightly than `weakest`."""
        this = self._parse_term()
        while found := self._match_bits(weakest):
            level, kind = found
            operand = self._parse_bitwise(level)
            this = self.expression(kind(this=this, expression=operand))
        return this

    def _match_bits(self, weakest: int) -> tuple[int, type[exp.Binary]] | None:
        """Read an operator, if it binds more tightly than `weakest`."""
        token = self._curr.token_type
        found = self.BITS.get(token)
        if found is not None and found[0] > weakest:
            self._advance()
            return found
        if token in _SHIFTS and weakest < _SHIFT and self._match_pair(token, token):
            return _SHIFT, _SHIFTS[token]
        return None

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        low = self._parse_comparison()
        if not self._match(TokenType.AND):
            self.raise_error("Expecting AND")
        high = self._parse_comparison()
        return self.expression(exp.Between(this=this, low=low, high=high))

    def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
        return self._parse_comparison() if distinct else super()._parse_is_rhs()
