"""What Spark's SQL has and sqlglot's parser lacks or reads otherwise.

In: tokens, or a parsed statement. Out: sqlglot nodes: `TABLE t`, pipe operators
(`FROM t |> WHERE …`) as they are written, VALUES as a query, `IDENTIFIER('…')` as the name, `?`
under the name of its position. `planner.parse` uses it; nothing else parses.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from planner.errors import ParseError

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_SET_OPERATIONS = {
    TokenType.UNION: exp.Union,
    TokenType.EXCEPT: exp.Except,
    TokenType.INTERSECT: exp.Intersect,
}


class UnsignedRightShift(exp.Expression, exp.Binary):
    """`a >>> b`: bits moved to the right, zeros from the left."""


# sqlglot has no token for `>>>`; this one means nothing else in Spark.
UNSIGNED_SHIFT = TokenType.HASH_DASH


class PipeStep(exp.Expression):
    """One operator behind `|>`; `kind` is its keyword in lower case."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "expressions": False, "kind": True}


class PipeQuery(exp.Expression, exp.Query):
    """A query and the operators behind it; `order` if its last ones order the result."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": True,
        "with_": False,
        "order": False,
    }

    @property
    def named_selects(self) -> list[str]:
        """Unknown before the names are resolved."""
        return []

    @property
    def selects(self) -> list[exp.Expr]:
        """Unknown before the names are resolved."""
        return []


def pipe_text(generator: Any, node: PipeQuery) -> str:
    """A query with pipe operators as messages show it."""
    kinds = " |> ".join(step.args["kind"].upper() for step in node.expressions)
    return f"{generator.sql(node.this)} |> {kinds}"


class SparkSyntax(SparkParser):
    """sqlglot's parser of Spark with what it lacks."""

    PLACEHOLDER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **SparkParser.PLACEHOLDER_PARSERS,
        TokenType.PLACEHOLDER: lambda self: self.parse_position_marker(),
    }

    BITWISE: ClassVar[dict[TokenType, Any]] = {
        **SparkParser.BITWISE,
        UNSIGNED_SHIFT: UnsignedRightShift,
    }

    # `array(…)` is a call like any other; sqlglot would read `array(1)[0]` as a constructor.
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        if self._match_text_seq("TIMESTAMP", "WITHOUT", "TIME", "ZONE"):
            return exp.DataType.build("TIMESTAMPNTZ", dialect="spark")
        return super()._parse_types(check_func, schema, allow_identifiers, with_collation)

    def parse_position_marker(self) -> exp.Expr:
        """A `?`, with its place in the text."""
        marker = self.expression(exp.Placeholder())
        marker.update_positions(self._prev)
        return marker

    def _parse_statement(self) -> exp.Expr | None:
        if self._is_table_statement():
            return self._parse_select()
        return super()._parse_statement()

    def _is_table_statement(self) -> bool:
        return (
            bool(self._curr)
            and self._curr.token_type == TokenType.TABLE
            and bool(self._next)
            and self._next.token_type in _NAMES
        )

    def _parse_select_query(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
    ) -> exp.Expr | None:
        in_from = table and self._prev.token_type != TokenType.L_PAREN
        if in_from or not self._is_table_statement():
            query = super()._parse_select_query(
                nested=nested,
                table=table,
                parse_subquery_alias=parse_subquery_alias,
                parse_set_operation=parse_set_operation,
            )
            is_piped = isinstance(query, exp.Values) and not table
            if query and is_piped and self._match(TokenType.PIPE_GT, advance=False):
                return exp.select("*").from_(query, copy=False)
            return query
        self._advance()
        name: Any = self._parse_table_parts()
        whole: Any = exp.select("*").from_(name, copy=False)
        whole = self._parse_query_modifiers(whole)
        return self._parse_set_operations(whole) if parse_set_operation else whole

    # ------------------------------------------------------------ pipes

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query:
        steps: list[PipeStep] = []
        while self._match(TokenType.PIPE_GT):
            start = self._curr
            step = self._parse_pipe_step()
            if step is None:
                self.raise_error(f"'{start.text if start else ''}' is no pipe operator")
                break
            if start is not None:
                step.update_positions(start)
            steps.append(step)
        result = PipeQuery(this=query, expressions=steps)
        for step in reversed(steps):
            kind = step.args["kind"]
            if kind == "order by":
                result.set("order", step.this.args["order"].copy())
            if kind not in ("limit", "offset"):
                break
        if query.args.get("with_"):
            result.set("with_", query.args["with_"].pop())
        return result

    def _parse_pipe_step(self) -> PipeStep | None:
        if self._match(TokenType.WHERE, advance=False):
            return PipeStep(kind="where", this=self._parse_where())
        if self._match(TokenType.SELECT):
            distinct = exp.Distinct() if self._match(TokenType.DISTINCT) else None
            items = self._parse_expressions()
            return PipeStep(kind="select", this=exp.Select(expressions=items, distinct=distinct))
        if self._match(TokenType.ORDER_BY, advance=False):
            return PipeStep(kind="order by", this=exp.Select(order=self._parse_order()))
        if self._match_set((TokenType.LIMIT, TokenType.OFFSET), advance=False):
            limit, offset = self._parse_limit(), self._parse_offset()
            return PipeStep(kind="limit", this=exp.Select(limit=limit, offset=offset))
        if self._match(TokenType.SET):
            return PipeStep(kind="set", expressions=self._parse_csv(self._parse_pipe_assignment))
        if self._match(TokenType.DROP):
            return PipeStep(kind="drop", expressions=self._parse_csv(self._parse_id_var))
        if self._match(TokenType.ALIAS):
            return PipeStep(kind="as", this=self._parse_id_var())
        if self._match_set((TokenType.PIVOT, TokenType.UNPIVOT), advance=False):
            return PipeStep(kind="pivot", this=self._parse_pivot())
        if self._match_texts(("EXTEND", "AGGREGATE")):
            return self._parse_pipe_items(str(self._prev.text).lower())
        return self._parse_pipe_combination()

    def _parse_pipe_assignment(self) -> exp.Expr | None:
        target = self._parse_id_var()
        if not self._match(TokenType.EQ):
            self.raise_error("Expecting = in SET")
        return exp.EQ(this=target, expression=self._parse_disjunction())

    def _parse_pipe_items(self, kind: str) -> PipeStep:
        if kind == "extend":
            return PipeStep(kind=kind, expressions=self._parse_expressions())
        grouped = self._match(TokenType.GROUP_BY, advance=False)
        items = [] if grouped else self._parse_expressions()
        keys = self._parse_expressions() if self._match(TokenType.GROUP_BY) else None
        group = exp.Group(expressions=keys) if keys is not None else None
        return PipeStep(kind=kind, this=group, expressions=items)

    def _parse_pipe_combination(self) -> PipeStep | None:
        """A set operation, a join, TABLESAMPLE."""
        operation = _SET_OPERATIONS.get(self._curr.token_type) if self._curr else None
        if operation is not None:
            self._advance()
            is_distinct = not self._match(TokenType.ALL)
            self._match(TokenType.DISTINCT)
            right = self._parse_select(nested=True, parse_set_operation=False, consume_pipe=False)
            node = operation(this=exp.Null(), expression=right, distinct=is_distinct)
            return PipeStep(kind="set operation", this=node)
        if self._match(TokenType.TABLE_SAMPLE, advance=False):
            return PipeStep(kind="tablesample", this=self._parse_table_sample())
        join = self._parse_join()
        return PipeStep(kind="join", this=join) if join else None


def as_query(statement: exp.Expr) -> exp.Expr:
    """The statement with Spark's own forms resolved; VALUES as a query.

    Raises:
        ParseError: For IDENTIFIER of what is no constant text.
    """
    if isinstance(statement, exp.Values):
        query = exp.Select(expressions=[exp.Star()])
        for part in ("with_", "order", "limit", "offset"):
            if statement.args.get(part):
                query.set(part, statement.args[part].pop())
        statement = query.from_(statement, copy=False)
    for node in list(statement.find_all(exp.Anonymous)):
        if node.name.lower() == "identifier" and len(node.expressions) == 1:
            _resolve_identifier(node)
    markers = [m for m in statement.find_all(exp.Placeholder) if m.name in ("", "?")]
    for number, marker in enumerate(sorted(markers, key=lambda m: m.meta.get("start", 0)), 1):
        marker.set("this", str(number))
    return statement


def _resolve_identifier(node: exp.Anonymous) -> None:
    text = _constant_text(node.expressions[0])
    if text is None:
        raise ParseError("IDENTIFIER(…) takes a constant text")
    try:
        name = exp.to_table(text, dialect="spark")
    except Exception as error:
        raise ParseError(f"IDENTIFIER('{text}') is no name") from error
    parent = node.parent
    if isinstance(parent, exp.Table) and parent.this is node:
        for part in ("this", "db", "catalog"):
            parent.set(part, name.args.get(part))
        return
    parts = [p.copy() for p in name.parts]
    names = zip(("this", "table", "db", "catalog"), reversed(parts), strict=False)
    node.replace(exp.Column(**dict(names)))


def _constant_text(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Paren):
        return _constant_text(node.this)
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.this)
    parts: list[exp.Expr] = []
    if isinstance(node, exp.DPipe):
        parts = [node.this, node.expression]
    elif isinstance(node, exp.Anonymous) and node.name.lower() == "concat":
        parts = node.expressions
    texts = [_constant_text(p) for p in parts]
    if not texts or any(t is None for t in texts):
        return None
    return "".join(t for t in texts if t is not None)
