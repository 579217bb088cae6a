"""Parse the parts of Spark's SQL that sqlglot lacks or reads differently.

These are `TABLE t`, pipe operators, VALUES as a query, and paths of VARIANT. `syntax.statement`
resolves `IDENTIFIER('…')` and `?` in the tree.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from stagecoach.planner.limits.deadline import check_deadline
from stagecoach.planner.syntax.constant_ranges import with_ranges_checked
from stagecoach.planner.syntax.constant_tokens import TEXTS, TYPES, with_joined_constants
from stagecoach.planner.syntax.precedence import SparkOperators
from stagecoach.planner.syntax.result_clauses import refuse_second_clause
from stagecoach.planner.syntax.window_names import with_window_names
from stagecoach.planner.syntax.word_names import with_word_names

E = TypeVar("E", bound=exp.Expr)

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_SET_OPERATIONS = {
    TokenType.UNION: exp.Union,
    TokenType.EXCEPT: exp.Except,
    TokenType.INTERSECT: exp.Intersect,
}


class UnaryPlus(exp.Unary):
    """`+ a`, which sqlglot's own parser drops."""


class VariantPath(exp.Expression):
    """`value:path`, a part of a VARIANT; `path` is the text behind the colon."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "path": True}


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


def _placed(node: exp.Expr | None, start: Token | None) -> exp.Expr | None:
    """The node, at the token that it starts with if it has no place yet."""
    if node is not None and start is not None and "line" not in node.meta:
        node.update_positions(start)
    return node


def _placed_unary(parser: Any) -> Any:
    def parse(self: SparkParser) -> exp.Expr | None:
        start = self._prev
        node: exp.Expr | None = parser(self)
        return _placed(node, start) if isinstance(node, exp.Unary) else node

    return parse


def _parse_plus(parser: Any) -> exp.Expr | None:
    operand = parser._parse_unary()
    return UnaryPlus(this=operand) if operand is not None else None


class SparkSyntax(SparkOperators):
    """sqlglot's parser of Spark with what it lacks."""

    UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
        token: _placed_unary(_parse_plus if token == TokenType.PLUS else parser)
        for token, parser in SparkParser.UNARY_PARSERS.items()
    }

    # `transform` is a function; the clause TRANSFORM … USING would run a script.
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser
        for name, parser in SparkParser.NO_PAREN_FUNCTION_PARSERS.items()
        if name != "TRANSFORM"
    }

    PLACEHOLDER_PARSERS: ClassVar[dict[TokenType, Any]] = {
        **SparkParser.PLACEHOLDER_PARSERS,
        TokenType.PLACEHOLDER: lambda self: self.parse_position_marker(),
        TokenType.COLON: lambda self: self.parse_named_marker(),
    }

    # `x FOR …` stands in PIVOT only; sqlglot would read a list comprehension.
    RANGE_PARSERS: ClassVar[dict[TokenType, Any]] = {
        token: parse
        for token, parse in SparkOperators.RANGE_PARSERS.items()
        if token != TokenType.FOR
    }

    COLON_IS_VARIANT_EXTRACT: ClassVar[bool] = True

    # `array(…)` is a call like any other; sqlglot would read `array(1)[0]` as a constructor.
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """The statements of the tokens, where keywords are names as they are in Spark."""
        tokens = with_joined_constants(with_ranges_checked(raw_tokens))
        return super().parse(with_word_names(with_window_names(tokens)), sql)

    def _parse_type(
        self, parse_interval: bool = True, fallback_to_identifier: bool = False
    ) -> exp.Expr | None:
        start, behind = self._curr, self._next
        found = super()._parse_type(parse_interval, fallback_to_identifier)
        is_typed = behind is not None and behind.token_type in TEXTS
        if isinstance(found, exp.Cast) and is_typed and start.token_type in TYPES:
            found.meta["typed"] = True  # `TIMESTAMP '…'`, which Spark reads when it parses
        return found

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        if self._match_text_seq("TIMESTAMP", "WITHOUT", "TIME", "ZONE"):
            return self.expression(exp.DataType(this=exp.DType.TIMESTAMPNTZ), self._prev)
        start = self._curr
        found = super()._parse_types(check_func, schema, allow_identifiers, with_collation)
        if isinstance(found, exp.DataType) and start is not None:
            found.meta["written"] = start.text
        return found

    def _parse_pivot_aggregation(self) -> exp.Expr | None:
        aggregate = self._parse_disjunction()
        is_bare = self._match(TokenType.FOR, advance=False)
        return aggregate if is_bare else self._parse_alias(aggregate)

    def parse_position_marker(self) -> exp.Expr:
        """A `?`, with its place in the text."""
        marker = self.expression(exp.Placeholder())
        marker.update_positions(self._prev)
        return marker

    def parse_named_marker(self) -> exp.Expr | None:
        """A `:name`, with the place of its colon; None if no name follows."""
        colon = self._prev
        if not self._match_set(self.COLON_PLACEHOLDER_TOKENS):
            return None
        return self.expression(exp.Placeholder(this=self._prev.text), colon)

    def expression(
        self, instance: E, token: Token | None = None, comments: list[str] | None = None
    ) -> E:
        """The node; one without others below it has the place of the token that it was made of."""
        check_deadline()
        if token is None and "line" not in instance.meta and self._prev is not None:
            values = instance.args.values()
            if not any(isinstance(value, exp.Expr | list) and value for value in values):
                token = self._prev
        return super().expression(instance, token, comments)

    def _parse_function_call(
        self,
        functions: dict[str, Any] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        # CAST, CASE and their like have a syntax of their own, and no place of their own.
        start = self._curr
        call = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
        return _placed(call, start)

    def _parse_paren(self) -> exp.Expr | None:
        start = self._curr
        return _placed(super()._parse_paren(), start)

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        start = self._curr
        found = super()._parse_interval(require_interval, parse_function_unit)
        _placed(found, start)
        return found

    def _parse_colon_as_variant_extract(self, this: exp.Expr | None) -> exp.Expr | None:
        """`value:name`, `value:['name']`, and so on: members behind points or in brackets."""
        while self._match(TokenType.COLON):
            first = self._curr
            if not self._is_path_bracket():
                self._path_name()
            while self._match(TokenType.DOT) or self._is_path_bracket():
                if self._prev.token_type == TokenType.DOT:
                    self._path_name()
            path = self._find_sql(first, self._prev) if first else ""
            this = self._parse_column_ops(self.expression(VariantPath(this=this, path=path)))
        return this

    def _path_name(self) -> None:
        if self._parse_id_var(any_token=True) is None:
            self.raise_error("Expecting a name in the path of a VARIANT")

    def _is_path_bracket(self) -> bool:
        """Read a position or name in brackets, if one follows."""
        if not self._match(TokenType.L_BRACKET):
            return False
        if not self._match_set((TokenType.NUMBER, TokenType.STRING, TokenType.STAR)):
            self.raise_error("Expecting a position or a name in the path of a VARIANT")
        if not self._match(TokenType.R_BRACKET):
            self.raise_error("Expecting ]")
        return True

    def _parse_partition_by(self) -> list[exp.Expr]:
        is_there = self._match(TokenType.PARTITION_BY, advance=False)
        keys = super()._parse_partition_by()
        if is_there and not keys:
            self.raise_error("Expecting an expression")
        return keys

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        group = super()._parse_group(skip_group_by_token)
        if group is not None and not any(group.args.values()):
            self.raise_error("Expecting an expression")
        self._refuse_empty_rows(group.expressions if group is not None else [])
        return group

    def _refuse_empty_rows(self, keys: list[exp.Expr]) -> None:
        if any(isinstance(key, exp.Tuple) and not key.expressions for key in keys):
            self.raise_error("Expecting an expression in ()")

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        found = super()._parse_in(this, alias)
        if not any(value for key, value in found.args.items() if key != "this"):
            self.raise_error("Expecting a value in the list of IN")
        return found

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """With conditions as keys, too, such as `ROLLUP(x IS NULL)`."""
        word = self._curr.token_type if self._curr else None
        if with_prefix or word not in (TokenType.CUBE, TokenType.ROLLUP):
            return super()._parse_cube_or_rollup(with_prefix)
        self._advance()
        keys = self._parse_wrapped_csv(self._parse_disjunction)
        self._refuse_empty_rows(keys or [exp.Tuple()])
        kind = exp.Cube if word == TokenType.CUBE else exp.Rollup
        return self.expression(kind(expressions=keys))

    def _parse_grouping_set(self) -> exp.Expr | None:
        found = self._parse_grouping_sets() or self._parse_cube_or_rollup()
        return found or self._parse_disjunction()

    def _parse_value(self, values: bool = True) -> exp.Tuple | None:
        start = self._curr
        row = super()._parse_value(values)
        _placed(row, start)
        return row

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

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> exp.Expr | None:
        # Behind an item of FROM, operators belong to the whole query.
        return super()._parse_select(
            nested=nested,
            table=table,
            parse_subquery_alias=parse_subquery_alias,
            parse_set_operation=parse_set_operation,
            consume_pipe=consume_pipe and not table,
        )

    def _parse_select_query(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
    ) -> exp.Expr | None:
        start = self._curr
        in_from = table and self._prev.token_type != TokenType.L_PAREN
        if in_from or not self._is_table_statement():
            query = super()._parse_select_query(
                nested=nested,
                table=table,
                parse_subquery_alias=parse_subquery_alias,
                parse_set_operation=parse_set_operation,
            )
            first = query
            while isinstance(first, exp.SetOperation):
                first = first.this
            if isinstance(first, exp.Select) and not first.expressions:
                self.raise_error("Expecting a column behind SELECT")
            if isinstance(first, exp.Select) and not first.args.get("with_"):
                _placed(first, start)
            is_piped = isinstance(query, exp.Values) and not table
            if query and is_piped and self._match(TokenType.PIPE_GT, advance=False):
                return _all_of(query)
            return query
        self._advance()
        name: Any = self._parse_table_parts()
        whole: Any = _all_of(name)
        whole = self._parse_query_modifiers(whole)
        return self._parse_set_operations(whole) if parse_set_operation else whole

    # ------------------------------------------------------------ pipes

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query:
        steps: list[PipeStep] = []
        while self._match(TokenType.PIPE_GT):
            start = self._curr
            step = self._parse_pipe_step()
            if step is None:
                self.raise_error(f"'{start.text if start else ''}' is not a pipe operator")
                break
            if start is not None:
                step.update_positions(start)
            steps.append(step)
            if step.args["kind"] in ("order by", "limit"):
                refuse_second_clause(self._curr)
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
            select = exp.Select(expressions=items, distinct=distinct)
            select.set("windows", self._parse_window_clause())
            return PipeStep(kind="select", this=select)
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
            name = self._parse_id_var()
            if name is None:
                self.raise_error("Expecting a name behind AS")
            return PipeStep(kind="as", this=name)
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
            items = self._parse_expressions()
            select = exp.Select(windows=self._parse_window_clause())
            return PipeStep(kind=kind, this=select, expressions=items)
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


def substr_call(parser: Any) -> exp.Expr:
    """A call of `substr`, whose column has that name; elsewhere it is `substring`."""
    start = parser._index
    call: exp.Expr = SparkParser.FUNCTION_PARSERS["SUBSTR"](parser)
    if all(t.token_type != TokenType.FROM for t in parser._tokens[start : parser._index]):
        call.meta["written"] = "substr"
    return call


def _all_of(source: exp.Expr) -> exp.Select:
    """`SELECT *` from what FROM takes."""
    return exp.Select(expressions=[exp.Star()]).from_(source, copy=False)


def position(node: exp.Expr) -> tuple[int | None, int | None]:
    """1-based line and column of a node: its own token, else the first one below it."""
    parts = [node] if "line" in node.meta else [p for p in node.walk() if "line" in p.meta]
    if not parts:
        return None, None
    meta = min((part.meta for part in parts), key=lambda m: m.get("start", 0))
    length = meta.get("end", 0) - meta.get("start", 0)
    return meta["line"], max(meta["col"] - length, 1)


def place_tokens(tree: exp.Expr, sql: str) -> None:
    """Correct the places of tokens of several lines: sqlglot keeps where they end."""
    if "\n" not in sql:
        return
    for node in tree.walk():
        start, end = node.meta.get("start"), node.meta.get("end")
        if start is not None and end is not None and "\n" in sql[start : end + 1]:
            node.meta["line"] = sql.count("\n", 0, start) + 1
            node.meta["col"] = start - sql.rfind("\n", 0, start) + end - start
