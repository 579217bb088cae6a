"""Parse SQL text into one SELECT that only reads tables of the catalog.

Anything that is not a SELECT, or reaches outside the tables, is rejected here, before any engine
sees it. sqlglot parses the text without its comments, which are found by Spark's own rules.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import TokenError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from stagecoach.planner.errors import ForbiddenSqlError, ParseError, SqlError
from stagecoach.planner.limits.deep_stack import run_deep
from stagecoach.planner.syntax.agreement import check_agreement
from stagecoach.planner.syntax.certain_errors import certain_error
from stagecoach.planner.syntax.misspelled import at_misspelled_word
from stagecoach.planner.syntax.outside import (
    FORBIDDEN_FUNCTIONS,
    PATH_FORMATS,
    refuse_outside_tokens,
)
from stagecoach.planner.syntax.parsed_query import ParsedQuery, Place, number_ctes
from stagecoach.planner.syntax.precedence import UNSIGNED_SHIFT, UnsignedRightShift
from stagecoach.planner.syntax.spark_syntax import (
    PipeQuery,
    SparkSyntax,
    UnaryPlus,
    VariantPath,
    pipe_text,
    place_tokens,
    substr_call,
)
from stagecoach.planner.syntax.spark_syntax import position as position
from stagecoach.planner.syntax.statement import as_query
from stagecoach.planner.syntax.syntax_conditions import syntax_condition
from stagecoach.planner.syntax.text import SparkText, cut_text
from stagecoach.planner.syntax.tokens import SYNTAX_ERROR
from stagecoach.planner.syntax.unparsed_query import UnparsedQuery
from stagecoach.planner.syntax.view_names import with_view_names

TABLE_FUNCTIONS = frozenset(
    (
        "range",
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
        "variant_explode",
        "variant_explode_outer",
        "sql_keywords",
        "collations",
    )
)
"""Table functions of Spark that read nothing."""


class StagecoachSpark(Spark):
    """Spark 4 in ANSI mode, as far as sqlglot's own dialect differs from it.

    CAST stays strict and division keeps its error; a doubled quote inside a string is a quote.
    """

    SAFE_DIVISION = False
    SUPPORTS_ORDER_BY_ALL = False  # which would read `t.all` as ALL, too

    class Tokenizer(Spark.Tokenizer):
        """Reads `'it''s'` and `>>>` as Spark 4 does."""

        KEYWORDS: ClassVar[dict[str, Any]] = {**Spark.Tokenizer.KEYWORDS, ">>>": UNSIGNED_SHIFT}
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Generator(SparkGenerator):
        """Knows the nodes that sqlglot has not."""

        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **SparkGenerator.TRANSFORMS,
            PipeQuery: pipe_text,
            UnaryPlus: lambda self, node: f"+ {self.sql(node, 'this')}",
            UnsignedRightShift: lambda self, node: self.binary(node, ">>>"),
            VariantPath: lambda self, node: f"{self.sql(node, 'this')}:{node.args['path']}",
        }

    class Parser(SparkSyntax):
        """Keeps CAST strict."""

        STRICT_CAST = True
        # Every function stays a plain call under the name that is written: sqlglot's typed nodes
        # have the semantics of other engines. Only what has a syntax of its own is parsed apart.
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.FUNCTION_PARSERS[name]
            for name in (
                "CAST",
                "EXTRACT",
                "OVERLAY",
                "POSITION",
                "SUBSTRING",
                "TRIM",
                "TRY_CAST",
            )
        } | {"SUBSTR": substr_call}


class UnknownSyntaxError(ParseError):
    """sqlglot cannot read the text; Spark's parser may."""


def _refused_if_too_deep(parse: Callable[[str], ParsedQuery]) -> Callable[[str], ParsedQuery]:
    """Parse on a deep stack; without a tree nothing could be checked, so nothing may run."""

    @functools.wraps(parse)
    def call(sql: str) -> ParsedQuery:
        try:
            return run_deep(lambda: parse(sql))
        except RecursionError:
            text = "the query is nested too deeply for the parser; nest it less"
            raise ParseError(text, line=1, column=1) from None

    return call


@functools.lru_cache(maxsize=16)
@_refused_if_too_deep
def parse_query(sql: str) -> ParsedQuery:
    """The one query in `sql`.

    The last queries are remembered: commands, parameters and the planner ask for the same ones.

    Raises:
        ParseError: For text that is not SQL, not a query, or more than one statement.
        ForbiddenSqlError: For a statement or function that does more than read tables.
    """
    cut = cut_text(sql)
    whole, sql = sql, cut.text
    refuse_outside_tokens(sql, cut.tokens)  # first, for it says what is wrong best
    dialect = StagecoachSpark()
    try:
        tokens = dialect.tokenize(sql)
        statements = [s for s in dialect.parser().parse(tokens, sql) if s is not None]
    except SqlglotParseError as error:
        first = error.errors[0] if error.errors else {}
        near = f" near '{first.get('highlight')}'" if first.get("highlight") else ""
        text = str(first.get("description") or error).rstrip(".")
        text = re.sub(r"<Token [^>]*>", "the end of the text", text)
        text = re.sub(r"^Required keyword: .*", "something is missing here", text)
        line, column = _start_of(first)
        condition = syntax_condition(cut, text, str(first.get("highlight") or ""))
        raise UnknownSyntaxError(
            f"syntax error{near}: {text}", condition=condition, line=line, column=column
        ) from error
    except TokenError as error:
        message = f"syntax error: {error}"
        condition = syntax_condition(cut)
        raise UnknownSyntaxError(message, condition=condition, line=1, column=1) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Builders of sqlglot's trees raise these on text that is not SQL, such as `f(`` => 1)`.
        raise UnknownSyntaxError(
            "syntax error: the text cannot be read as a query",
            condition=SYNTAX_ERROR,
            line=1,
            column=1,
        ) from error
    if not statements:
        raise ParseError(
            "the text contains no statement",
            condition=SYNTAX_ERROR if whole.strip() else "PARSE_EMPTY_STATEMENT",
            line=1,
            column=1,
        )
    if len(statements) > 1:
        line, column = position(statements[1])
        raise ParseError(
            f"found {len(statements)} statements; a query file holds exactly one SELECT",
            condition=SYNTAX_ERROR,
            line=line,
            column=column,
        )
    place_tokens(statements[0], sql)
    statement = as_query(statements[0])
    if isinstance(statement, exp.Subquery):
        statement = statement.unnest()
    if not isinstance(statement, exp.Query):
        if isinstance(statement, exp.Condition | exp.Alias) and (wrong := certain_error(cut)):
            raise at_misspelled_word(wrong, whole)
        kind = statement.key.upper() if not isinstance(statement, exp.Command) else statement.name
        raise ForbiddenSqlError(
            f"{kind} is not a query; only a SELECT can be planned", line=1, column=1
        )
    check_agreement(cut, tokens)
    if wrong := certain_error(cut):  # which sqlglot lets pass, such as `f(1, )`
        raise at_misspelled_word(wrong, whole)
    refuse_outside_access(statement)
    number_ctes(statement)
    return ParsedQuery(whole, statement)


@functools.lru_cache(maxsize=16)
def read_query(sql: str) -> ParsedQuery | UnparsedQuery:
    """The one query in `sql`, or the text if only Spark's parser may know what it is.

    Raises:
        ParseError: Spark is sure to refuse the syntax, too, or reads other tokens in the text.
        ForbiddenSqlError: As `parse_query`.
    """
    try:
        return parse_query(sql)
    except UnknownSyntaxError as error:
        if certain_error(cut_text(sql)):
            moved = at_misspelled_word(error, sql)
            if moved is error:  # the parser has told it better
                raise
            raise moved from error
        query = UnparsedQuery(sql, error)
        query.refuse_outside_access()
        return query


def spark_text(sql: str) -> SparkText:
    """The text of a user's query as Spark gets it.

    Raises:
        ParseError: As `read_query`.
        ForbiddenSqlError: As `read_query`.
    """
    query = read_query(sql)
    if isinstance(query, ParsedQuery):
        return SparkText(with_view_names(query))
    return SparkText(sql, is_parsed=False)


def _start_of(found: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Where the token of a sqlglot error begins; sqlglot tells where it ends."""
    if not isinstance(found.get("line"), int) or not isinstance(found.get("col"), int):
        return 1, 1
    length = len(str(found.get("highlight") or " "))
    return found["line"], max(found["col"] - length + 1, 1)


def refuse_outside_access(tree: exp.Expr) -> None:
    """Refuse what would read or run something besides the tables of the catalog.

    Raises:
        ForbiddenSqlError: Naming the function or table and its place.
    """
    for node in tree.walk():
        if isinstance(node, exp.Table):
            _check_table(node)
        elif isinstance(node, exp.QueryTransform):
            line, column = position(node)
            text = "TRANSFORM … USING runs a program; it is not allowed"
            raise ForbiddenSqlError(text, line=line, column=column)
        elif isinstance(node, exp.Into | exp.DML | exp.DDL) and not isinstance(node, exp.Query):
            line, column = position(node)
            text = f"{node.key.upper()} is not allowed in a query"
            raise ForbiddenSqlError(text, line=line, column=column)
        elif isinstance(node, exp.Func):
            name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
            if name in FORBIDDEN_FUNCTIONS:
                line, column = position(node)
                raise ForbiddenSqlError(
                    f"function '{name}' reaches outside the query and is not allowed",
                    line=line,
                    column=column,
                )


def _check_table(table: exp.Table) -> None:
    line, column = position(table)
    if isinstance(table.this, exp.Func):
        name = table.this.name if isinstance(table.this, exp.Anonymous) else table.this.sql_name()
        if name.lower() not in TABLE_FUNCTIONS:
            raise ForbiddenSqlError(
                f"table function '{name}' is not allowed; name a table of the catalog",
                line=line,
                column=column,
            )
        return
    if table.db.lower() in PATH_FORMATS or re.search(r"[/\\:]", table.name):
        raise ForbiddenSqlError(
            f"'{table.sql(dialect=StagecoachSpark)}' reads a path; add the files to the catalog "
            "and name the table",
            line=line,
            column=column,
        )


def parameter_places(sql: str) -> Mapping[str, Place]:
    """Line and column of the first use of each parameter; empty for text that is not a query."""
    try:
        return read_query(sql).parameters
    except SqlError:
        return {}
