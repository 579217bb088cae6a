"""A grammar of queries over columns of every type and every function that the planner knows.

It nests the forms of `tests.differential.query_grammar` and fills them with templates, so that a
query calls functions on the results of functions, of subqueries, of joins and of windows. Its
expressions may raise; then both must. Nothing in them depends on the order of rows, but for sums of
floats, which are only shown.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.random_queries.templates import SMALL, Hole, Template
from tests.differential.query_grammar import Kind, QueryGrammar, Relation, Scope, outputs

_LITERALS: dict[Kind, list[str]] = {
    SMALL: ["0", "1", "2", "3", "-1", "7"],
    "tinyint": ["0Y", "1Y", "-128Y", "127Y"],
    "smallint": ["0S", "-1S", "32767S"],
    "int": ["0", "1", "-1", "3", "2147483647", "-2147483648"],
    "bigint": ["0L", "1L", "-5L", "9223372036854775807L"],
    "float": ["0.0F", "-0.0F", "1.5F", "CAST('NaN' AS FLOAT)"],
    "double": ["0.0D", "-0.0D", "2.5D", "1e-7", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"],
    "string": ["''", "'a'", "'ß'", "' b '", "'12'", "'2024-02-29'", "'a,b'", "'%'", "'日本'", "'it''s'"],
    "binary": ["X''", "X'00FF'", "CAST('abc' AS BINARY)"],
    "boolean": ["true", "false"],
    "date": ["DATE'1970-01-01'", "DATE'2024-02-29'", "DATE'0001-01-01'", "DATE'9999-12-31'"],
    "timestamp": ["TIMESTAMP'2024-03-10 07:30:00'", "TIMESTAMP'1969-12-31 23:59:59.999999'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ'2024-02-29 10:11:12.5'", "TIMESTAMP_NTZ'1970-01-01 00:00:00'"],
    "array<int>": ["array(1, NULL, 2)", "array()::ARRAY<INT>", "array(1)"],
    "array<string>": ["array('a', '', NULL)", "split('a,b', ',')"],
}  # fmt: skip
_COMMON = (
    *("int", "int", "bigint", "string", "string", "date", "boolean", "double", "timestamp"),
    *("decimal(5,2)", "decimal(15,2)", "decimal(10,4)", "tinyint", "smallint", "float"),
    *("decimal(38,4)", "decimal(20,0)", "timestamp_ntz", "binary", "array<int>", "array<string>"),
)
_CASTS = (
    ("tinyint", "int"), ("smallint", "int"), ("int", "bigint"), ("int", "decimal(15,2)"), ("int", "double"), ("bigint", "decimal(20,0)"), ("decimal(5,2)", "decimal(15,2)"),
    ("decimal(5,2)", "double"), ("float", "double"), ("date", "timestamp"), ("date", "string"), ("int", "string"), ("bigint", "string"), ("decimal(15,2)", "string"),
    ("boolean", "string"), ("boolean", "int"), ("timestamp", "date"), ("timestamp", "string"), ("timestamp_ntz", "date"), ("string", "binary"), ("int", "boolean"), ("double", "string"),
    ("array<int>", "string"), ("array<int>", "array<string>"), ("decimal(10,4)", "decimal(38,4)"), ("double", "float"), ("decimal(15,2)", "decimal(5,2)"), ("double", "int"), ("string", "int"), ("string", "date"),
)  # fmt: skip
_COMPARE = ["=", "<", ">", "<=", ">=", "<>", "<=>", "!=", "=="]
_NO_KEYS = ("boolean", "tinyint", "map", "float", "double", "array", "struct", "interval")
_TOP = 2  # how deep a query nests
_BASES = ("w", "w", "w", "w", "e", "g", "g", "n", "jt", "x", "y", "z")
_SMALL_COLUMNS = ("k", "n", "h")


@dataclass(frozen=True)
class Library:
    """What queries are made of.

    Attributes:
        tables: Names and types of columns, by table.
        scalars: Templates of scalar expressions, by type.
        aggregates: Aggregates over the columns of `g`, by type.
        windows: Window functions over the columns of `g`, by type.
    """

    tables: Mapping[str, tuple[tuple[str, Kind], ...]]
    scalars: Mapping[Kind, Sequence[Template]]
    aggregates: Mapping[Kind, Sequence[Template]]
    windows: Mapping[Kind, Sequence[Template]]


class WideGrammar(QueryGrammar):
    """Makes queries from one seed.

    Args:
        seed: The same seed and library give the same query.
        library: Tables and templates.
    """

    def __init__(self, seed: int, library: Library) -> None:
        super().__init__(seed)
        self._rng = random.Random(seed)
        self._library = library
        self._bases: dict[str, str] = {}  # tables by alias
        self._shows = False  # whether the expression is only part of the result

    def query(self) -> str:
        """One query, with or without CTEs, in an order or not."""
        rng = self._rng
        ctes = []
        for number in range(rng.choice([0, 0, 0, 1, 2])):
            kinds = self._kinds(rng.randint(2, 5))
            body = self._body(kinds, 1, [])
            ctes.append(f"q{number} AS ({body})")
            self._ctes.append(Relation(f"q{number}", outputs(kinds)))
        kinds = self._kinds(rng.randint(1, 6))
        text = self._body(kinds, _TOP, [])
        if rng.random() < 0.25 and all(map(_exact, kinds)):
            text += self._ordered(len(kinds))
        elif rng.random() < 0.1:
            text = self._pipes(text, kinds)
        return f"WITH {', '.join(ctes)} {text}" if ctes else text

    def _ordered(self, count: int) -> str:
        rng = self._rng
        ends = ["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
        keys = ", ".join(
            f"{rng.choice([f'c{i}', str(i + 1)])}{rng.choice(ends)}" for i in range(count)
        )
        keys = rng.choice([keys, keys, keys, "ALL"])
        return f" ORDER BY {keys}{rng.choice(['', f' LIMIT {rng.randint(0, 30)}', ' LIMIT 5 OFFSET 2', ' OFFSET 3'])}"  # fmt: skip

    def _pipes(self, text: str, kinds: Sequence[Kind]) -> str:
        rng = self._rng
        scope = Scope([Relation("p", outputs(kinds))])
        steps = [
            f"|> WHERE {self.predicate(scope, 1, 0)}",
            f"|> EXTEND {self.value('int', scope, 1, 0)} AS added",
            f"|> SET c0 = {self.value(kinds[0], scope, 1, 0)}",
            "|> AGGREGATE count(*) AS rows, count(DISTINCT c0) AS values",
        ]
        return f"FROM ({text}) p {rng.choice(steps)}"

    # ------------------------------------------------------------ queries

    def _kinds(self, count: int) -> list[Kind]:
        rng = self._rng
        rare = list(self._library.scalars)
        return [
            rng.choice(rare) if rng.random() < 0.15 else rng.choice(_COMMON) for _ in range(count)
        ]

    def _body(self, kinds: Sequence[Kind], depth: int, outer: list[Relation]) -> str:
        if depth and self._rng.random() < 0.15 and all(map(_orderable, kinds)):
            word = self._rng.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])  # fmt: skip
            # Below the top: sums of floats are not compared by rows that differ in rounding.
            if self._rng.random() < 0.4:
                return f" {word} ".join(self._alike(kinds, outer))
            sides = [self._select(kinds, depth - 1, outer) for _ in range(2)]
            return f"{sides[0]} {word} {sides[1]}"
        return self._select(kinds, depth, outer)

    def _select(self, kinds: Sequence[Kind], depth: int, outer: list[Relation]) -> str:
        rng = self._rng
        roll = rng.random()
        if roll < 0.08:
            return self._over_groups(kinds, depth, outer)
        if roll < 0.13 and depth:
            return self._pivoted(kinds, depth)
        return super()._select(kinds, depth, outer)

    def _alike(self, kinds: Sequence[Kind], outer: list[Relation]) -> list[str]:
        """Aggregates of one table by the same key, which stages read through one exchange."""
        rng = self._rng
        table = rng.choice(_BASES)
        columns = self._library.tables[table]
        keys = [name for name, kind in columns if _orderable(kind) and _exact(kind)]
        key = rng.choice(keys)
        self._shows = False
        sides = [self._keyed(kinds, table, key, outer) for _ in range(rng.randint(2, 3))]
        return [f"{side}.{key}" for side in sides]

    def _keyed(self, kinds: Sequence[Kind], table: str, key: str, outer: list[Relation]) -> str:
        """Aggregates of a table, up to the alias in GROUP BY."""
        alias, columns = self._alias(), self._library.tables[table]
        scope, key_kind = Scope([Relation(alias, columns)], outer), dict(columns)[key]

        def item(kind: Kind) -> str:
            if kind == key_kind and self._rng.random() < 0.6:
                return f"{alias}.{key}"
            return self._aggregate(kind, scope)

        return f"SELECT {self._items(kinds, item)} FROM {table} {alias} GROUP BY {alias}"

    def _over_groups(self, kinds: Sequence[Kind], depth: int, outer: list[Relation]) -> str:
        """Windows over the table of groups, whose templates order its rows by a key."""
        rng = self._rng
        alias = self._alias()
        scope = Scope([Relation(alias, self._library.tables["g"])], outer)

        def item(kind: Kind) -> str:
            templates = self._library.windows.get(kind, ())
            if not templates or rng.random() < 0.2 or (depth != _TOP and not _exact(kind)):
                return self.value(kind, scope, 1, 0)
            return rng.choice(templates).fill(lambda hole: f"{alias}.{hole.column}")

        where = f" WHERE {self.predicate(scope, 1, depth)}" if rng.random() < 0.4 else ""
        return f"SELECT {self._items(kinds, item)} FROM g {alias}{where}"

    def _pivoted(self, kinds: Sequence[Kind], depth: int) -> str:
        rng = self._rng
        inner = self._kinds(2)
        source = self._body([*inner, "int", "string"], depth - 1, [])
        alias = self._alias()
        if rng.random() < 0.5:
            aggregate = rng.choice(["count(*)", "min(c0)", "max(c1)", "count(DISTINCT c1)"])
            if not all(map(_orderable, inner)):
                aggregate = "count(*)"
            text = f"(SELECT * FROM ({source}) PIVOT ({aggregate} FOR c3 IN ('a' AS pa, '' AS pb, 'ß' AS pc))) {alias}"  # fmt: skip
            counts = "count" in aggregate
            made = tuple((name, "bigint" if counts else inner[0 if "c0" in aggregate else 1]) for name in ("pa", "pb", "pc"))  # fmt: skip
            scope = Scope([Relation(alias, made)])
        else:
            nulls = rng.choice(["", "INCLUDE NULLS ", "EXCLUDE NULLS "])
            text = f"(SELECT * FROM (SELECT c2, c3, c2 + 1L AS c4, c2 % 3 AS c5 FROM ({source}) WHERE c2 < 100) UNPIVOT {nulls}(v FOR m IN (c4 AS one, c5))) {alias}"  # fmt: skip
            scope = Scope([Relation(alias, (("c2", "int"), ("c3", "string"), ("m", "string"), ("v", "bigint")))])  # fmt: skip
        return (
            f"SELECT {self._items(kinds, lambda kind: self.value(kind, scope, 1, 0))} FROM {text}"
        )

    def _grouped(
        self, kinds: Sequence[Kind], source: str, where: str, scope: Scope, depth: int
    ) -> str:
        rng = self._rng
        self._shows = depth == _TOP
        keys: dict[Kind, str] = {}
        for kind in dict.fromkeys(kinds):
            if _orderable(kind) and _exact(kind) and rng.random() < 0.5:
                keys[kind] = self.value(kind, scope, rng.choice([0, 0, 1]), 0)
        plain = {kind: text for kind, text in keys.items() if "." in text}

        def item(kind: Kind) -> str:
            if kind in plain and rng.random() < 0.7:
                return plain[kind]
            return self._aggregate(kind, scope)

        items = self._items(kinds, item)
        listed = ", ".join(dict.fromkeys(plain.values()))
        group = f" GROUP BY {listed}" if listed else ""
        if listed and rng.random() < 0.3:
            group = rng.choice([f" GROUP BY {form}({listed})" for form in ("ROLLUP", "CUBE")] + [f" GROUP BY GROUPING SETS (({listed}), ())", f" GROUP BY {listed} WITH ROLLUP"])  # fmt: skip
        having = ""
        if rng.random() < 0.25:
            self._shows = False
            having = f" HAVING {self._aggregate('bigint', scope)} {rng.choice(_COMPARE)} 1"
        self._shows = False
        return f"SELECT {items} FROM {source}{where}{group}{having}"

    def _relation(self, depth: int) -> tuple[str, Relation]:
        rng = self._rng
        alias = self._alias()
        if depth and rng.random() < 0.25:
            kinds = self._kinds(rng.randint(2, 4))
            return f"({self._body(kinds, depth - 1, [])}) {alias}", Relation(alias, outputs(kinds))
        if self._ctes and rng.random() < 0.4:
            cte = rng.choice(self._ctes)
            return f"{cte.alias} {alias}", Relation(alias, cte.columns)
        if rng.random() < 0.04:
            rows = ", ".join(f"({self._literal('int')}, {self._literal('string')})" for _ in range(3))  # fmt: skip
            return f"(VALUES {rows}) {alias}(c0, c1)", Relation(alias, (("c0", "int"), ("c1", "string")))  # fmt: skip
        table = rng.choice(_BASES)
        self._bases[alias] = table
        return f"{table} {alias}", Relation(alias, self._library.tables[table])

    def _generated(self, text: str, scope: Scope) -> str:
        rng = self._rng
        alias, outer = self._alias(), rng.choice(["", "OUTER "])
        kind = rng.choice(["int", "string"])
        values = self.value(f"array<{kind}>", scope, 1, 0)
        if rng.random() < 0.3:
            scope.relations.append(Relation(alias, (("p", "int"), ("e", kind))))
            return f"{text} LATERAL VIEW {outer}posexplode({values}) {alias} AS p, e"
        scope.relations.append(Relation(alias, (("e", kind),)))
        return f"{text} LATERAL VIEW {outer}explode({values}) {alias} AS e"

    def _joins(self, kind: Kind) -> bool:
        return not kind.startswith(_NO_KEYS)

    # ------------------------------------------------------------ expressions

    def _literals(self, kind: Kind) -> list[str]:
        if kind.startswith("decimal"):
            return [f"CAST({number} AS {kind})" for number in ("0", "0.1", "-0.05", "NULL")]
        return _LITERALS.get(kind) or [_null(kind)]

    def _literal(self, kind: Kind) -> str:
        if kind != SMALL and self._rng.random() < 0.08:
            return _null(kind)
        return self._rng.choice(self._literals(kind))

    def _column(self, kind: Kind, scope: Scope) -> str | None:
        names = scope.names("int" if kind == SMALL else kind)
        if kind == SMALL:
            names = [n for n in names if n.rpartition(".")[2] in _SMALL_COLUMNS]
        return self._rng.choice(names) if names else None

    def value(self, kind: Kind, scope: Scope, deep: int, depth: int) -> str:
        """An expression of a type.

        Args:
            kind: The type.
            scope: Names.
            deep: How deep functions nest.
            depth: How deep queries nest.
        """
        rng = self._rng
        column = self._column(kind, scope)
        leaf = column if column and rng.random() < 0.9 else self._literal(kind)
        if kind == SMALL or (deep <= 0 and (column or rng.random() < 0.7)):
            return leaf
        if rng.random() < 0.2 and column:
            return leaf
        if depth and rng.random() < 0.08 and _orderable(kind):
            return self._scalar_subquery(kind, scope, depth - 1)
        if rng.random() < 0.3:
            return self._combined(kind, scope, deep - 1, depth)
        templates = self._library.scalars.get(kind, ())
        if not templates or deep < -1:
            return leaf
        return f"({rng.choice(templates).fill(lambda hole: self._filled(hole, scope, deep - 1))})"

    def _filled(self, hole: Hole, scope: Scope, deep: int) -> str:
        return self.value(hole.kind, scope, deep, 0)

    def _combined(self, kind: Kind, scope: Scope, deep: int, depth: int) -> str:
        rng = self._rng
        one = self.value(kind, scope, deep, 0)
        forms: list[Callable[[], str]] = [
            lambda: f"coalesce({one}, {self._literal(kind)})",
            lambda: (
                f"CASE WHEN {self.predicate(scope, 0, depth)} THEN {one} ELSE {self.value(kind, scope, deep, 0)} END"
            ),
            lambda: f"IF({self.predicate(scope, 0, 0)}, {one}, NULL)",
            lambda: f"CAST({one} AS {_written(kind)})",
        ]
        if _orderable(kind):
            forms.append(lambda: f"nullif({one}, {self.value(kind, scope, 0, 0)})")
        if _orderable(kind):
            forms.append(lambda: f"{rng.choice(['greatest', 'least'])}({one}, {self.value(kind, scope, deep, 0)})")  # fmt: skip

        def cast(source: Kind) -> str:
            return f"{rng.choice(['CAST', 'try_cast'])}({self.value(source, scope, deep, 0)} AS {_written(kind)})"  # fmt: skip

        forms += [partial(cast, source) for source, target in _CASTS if target == kind]
        return rng.choice(forms)()

    def predicate(self, scope: Scope, deep: int, depth: int) -> str:
        """A condition; with a depth it may hold subqueries, under OR and NOT too."""
        rng = self._rng
        kind = rng.choice(["int", "string", "date", "bigint", "decimal(15,2)", "double", "timestamp", "decimal(10,4)", "tinyint"])  # fmt: skip
        left = self.value(kind, scope, min(deep, 1), 0)
        right = rng.choice([self.value(kind, scope, 0, 0), self._literal(kind)])
        correlated = scope.outer_names(kind)
        if correlated and rng.random() < 0.4:
            right = rng.choice(correlated)
        if depth and rng.random() < 0.3:
            plain = self._subquery_predicate(kind, left, scope, depth - 1)
        else:
            plain = rng.choice([
                f"{left} {rng.choice(_COMPARE)} {right}",
                f"({left} IS {rng.choice(['', 'NOT ', 'NOT '])}NULL)",
                f"{left} IN ({', '.join(self._literals(kind)[:3])})",
                f"{left} NOT IN ({self._literal(kind)}, {right})",
                f"({left} {rng.choice(['', 'NOT '])}BETWEEN {self._literal(kind)} AND {right})",
                f"({left} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {right})",
                self.value("boolean", scope, deep, 0),
            ])  # fmt: skip
        plain = f"({plain})"
        if deep <= 0 or rng.random() < 0.5:
            return plain
        other = self.predicate(scope, deep - 1, depth)
        return rng.choice([f"({plain} AND {other})", f"({plain} OR {other})", f"({plain} OR {other})", f"NOT ({plain})"])  # fmt: skip

    # ------------------------------------------------------------ aggregates, windows

    def _aggregate(self, kind: Kind, scope: Scope) -> str:
        rng = self._rng
        groups = [r.alias for r in scope.relations if self._bases.get(r.alias) == "g"]
        templates = self._library.aggregates.get(kind, ())
        if groups and templates and rng.random() < 0.7 and (self._shows or _exact(kind)):
            alias = rng.choice(groups)
            return rng.choice(templates).fill(lambda hole: f"{alias}.{hole.column}")
        where = f" FILTER (WHERE {self.predicate(scope, 0, 0)})" if rng.random() < 0.2 else ""
        value = self.value(kind, scope, 1, 0)
        if kind == "bigint" and rng.random() < 0.8:
            other = self.value(rng.choice(_COMMON), scope, 1, 0)
            number = self.value(rng.choice(["int", "tinyint", "smallint"]), scope, 1, 0)
            return rng.choice([f"count(*){where}", f"count({other}){where}", f"count(DISTINCT {other})", f"sum({number}){where}", f"count_if({self.predicate(scope, 0, 0)}){where}", f"bit_xor({value}){where}"])  # fmt: skip
        if kind == "boolean":
            return f"{rng.choice(['bool_and', 'bool_or', 'min', 'max'])}({value}){where}"
        if kind == "decimal(15,2)" and rng.random() < 0.5:
            return f"CAST({rng.choice(['sum', 'avg', 'try_sum'])}({self.value('decimal(5,2)', scope, 1, 0)}){where} AS DECIMAL(15,2))"  # fmt: skip
        if not _orderable(kind):
            return _null(kind)
        return f"{rng.choice(['min', 'max'])}({value}){where}"

    def _windowed(self, kind: Kind, scope: Scope) -> str:
        rng = self._rng
        keys = [self.value(k, scope, 0, 0) for k in rng.sample(_COMMON, rng.randint(0, 2)) if _orderable(k)]  # fmt: skip
        partition = f"PARTITION BY {', '.join(keys)}" if keys else ""
        order = ", ".join(
            f"{self.value(k, scope, rng.choice([0, 0, 1]), 0)}{rng.choice(['', ' DESC', ' NULLS LAST'])}"
            for k in rng.sample(_COMMON, rng.randint(1, 2))
        )
        if kind == "int" and rng.random() < 0.5:
            return f"{rng.choice(['rank', 'dense_rank'])}() OVER ({partition} ORDER BY {order})"
        frame = rng.choice(["", f"ORDER BY {order}", f"ORDER BY {order} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", f"ORDER BY {order} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"])  # fmt: skip
        if not _orderable(kind):
            return self.value(kind, scope, 1, 0)
        if kind == "bigint":
            call = rng.choice(["count(*)", f"sum({self.value('int', scope, 0, 0)})", f"count({self.value('string', scope, 1, 0)})"])  # fmt: skip
        else:
            call = f"{rng.choice(['min', 'max'])}({self.value(kind, scope, 1, 0)})"
        return f"{call} OVER ({partition} {frame})"


def _written(kind: Kind) -> str:
    """A type as SQL: names of fields may be no identifiers."""
    return re.sub(r"([^<,:>]+):", r"`\1`:", kind)


def _null(kind: Kind) -> str:
    return f"CAST(NULL AS {_written(kind)})" if kind != "void" else "NULL"


def _exact(kind: Kind) -> bool:
    """Whether equal values of a type are the same: not 0.0 and -0.0."""
    return "float" not in kind and "double" not in kind and _orderable(kind)


def _orderable(kind: Kind) -> bool:
    return not any(word in kind for word in ("map", "variant", "void", "geo"))
