"""A grammar of queries: a seed gives SQL that Spark accepts, of every form that is planned.

Expressions are typed, so that queries are valid; nothing in them overflows, divides by zero or
depends on the order of rows, so that each has one answer. Sub-queries, derived tables, CTEs, set
operations, windows, grouping sets and generators nest in one another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Kind = str
NUMBERS = ("int", "bigint", "decimal")
KINDS = (*NUMBERS, "string", "date", "boolean")
_TABLE = (
    ("id", "int"), ("k", "int"), ("v", "int"), ("kl", "bigint"), ("ks", "string"), ("s", "string"),
    ("w", "decimal"), ("kc", "decimal"), ("kt", "date"), ("kb", "boolean"),
)  # fmt: skip
_LITERALS = {
    "int": ["0", "1", "3", "-2"],
    "bigint": ["1L", "CAST(2 AS BIGINT)"],
    "string": ["'a'", "'ß'", "''", "'b'"],
    "decimal": ["0.50", "1.25", "CAST(-3 AS DECIMAL(10,2))"],
    "date": ["DATE'1970-01-01'", "DATE'2024-02-29'"],
    "boolean": ["true", "false"],
}
_COMPARE = ["=", "<", ">", "<=", ">=", "<>", "<>", "<=>"]


@dataclass(frozen=True)
class Relation:
    """An item of FROM: an alias and its typed columns."""

    alias: str
    columns: tuple[tuple[str, Kind], ...]


@dataclass
class Scope:
    """What an expression may refer to; `outer` are the relations of enclosing queries."""

    relations: list[Relation]
    outer: list[Relation] = field(default_factory=list)

    def names(self, kind: Kind) -> list[str]:
        """Columns of a type."""
        return [f"{r.alias}.{n}" for r in self.relations for n, k in r.columns if k == kind]

    def outer_names(self, kind: Kind) -> list[str]:
        """Columns of a type in enclosing queries."""
        return [f"{r.alias}.{n}" for r in self.outer for n, k in r.columns if k == kind]


class QueryGrammar:
    """Makes queries from one seed.

    Args:
        seed: The same seed gives the same query.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._aliases = 0
        self._ctes: list[Relation] = []

    def query(self) -> str:
        """One query, with or without CTEs, in an order or not."""
        rng = self._rng
        ctes = []
        for number in range(rng.choice([0, 0, 0, 1, 2])):
            kinds = self._kinds(rng.randint(2, 4))
            body = self._body(kinds, 1, [])
            ctes.append(f"q{number} AS ({body})")
            self._ctes.append(Relation(f"q{number}", outputs(kinds)))
        kinds = self._kinds(rng.randint(1, 4))
        text = self._body(kinds, 2, [])
        if rng.random() < 0.25:
            keys = ", ".join(
                f"{i + 1}{rng.choice(['', ' DESC', ' NULLS LAST', ' DESC NULLS FIRST'])}"
                for i in range(len(kinds))
            )
            limit = rng.choice(["", f" LIMIT {rng.randint(0, 30)}", " LIMIT 5 OFFSET 2"])
            text += f" ORDER BY {keys}{limit}"
        return f"WITH {', '.join(ctes)} {text}" if ctes else text

    # ------------------------------------------------------------ queries

    def _kinds(self, count: int) -> list[Kind]:
        return [self._rng.choice(KINDS) for _ in range(count)]

    def _body(self, kinds: Sequence[Kind], depth: int, outer: list[Relation]) -> str:
        rng = self._rng
        if depth and rng.random() < 0.15:
            word = rng.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])  # fmt: skip
            sides = [self._select(kinds, depth - 1, outer) for _ in range(2)]
            return f"{sides[0]} {word} {sides[1]}"
        return self._select(kinds, depth, outer)

    def _select(self, kinds: Sequence[Kind], depth: int, outer: list[Relation]) -> str:
        rng = self._rng
        source, scope = self._from(depth, outer)
        where = f" WHERE {self.predicate(scope, 2, depth)}" if rng.random() < 0.35 else ""
        form = rng.choice(["plain", "plain", "group", "group", "window", "distinct"])
        if form == "group":
            return self._grouped(kinds, source, where, scope, depth)
        if form == "window":
            items = self._items(kinds, lambda kind: self._windowed(kind, scope))
            return f"SELECT {items} FROM {source}{where}"
        items = self._items(kinds, lambda kind: self.value(kind, scope, 2, depth))
        word = "DISTINCT " if form == "distinct" else ""
        return f"SELECT {word}{items} FROM {source}{where}"

    def _items(self, kinds: Sequence[Kind], make: Callable[[Kind], str]) -> str:
        return ", ".join(f"{make(kind)} AS c{i}" for i, kind in enumerate(kinds))

    def _grouped(
        self, kinds: Sequence[Kind], source: str, where: str, scope: Scope, depth: int
    ) -> str:
        rng = self._rng
        keys = {}
        for kind in dict.fromkeys(kinds):
            names = scope.names(kind)
            if names and rng.random() < 0.5:
                keys[kind] = rng.choice(names)

        def item(kind: Kind) -> str:
            if kind in keys and rng.random() < 0.7:
                return keys[kind]
            return self._aggregate(kind, scope)

        items = self._items(kinds, item)
        listed = ", ".join(dict.fromkeys(keys.values()))
        group = f" GROUP BY {listed}" if listed else ""
        if listed and rng.random() < 0.25:
            form = rng.choice(["ROLLUP", "CUBE", "sets"])
            group = f" GROUP BY {form}({listed})" if form != "sets" else f" GROUP BY GROUPING SETS (({listed}), ())"  # fmt: skip
        having = ""
        if rng.random() < 0.25:
            having = f" HAVING {self._aggregate('bigint', scope)} {rng.choice(['>', '<', '<>'])} 1"
        return f"SELECT {items} FROM {source}{where}{group}{having}"

    # ------------------------------------------------------------ FROM

    def _from(self, depth: int, outer: list[Relation]) -> tuple[str, Scope]:
        rng = self._rng
        text, first = self._relation(depth)
        scope = Scope([first], outer)
        for _ in range(rng.choice([0, 0, 1, 1, 2] if depth else [0, 1])):
            kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "CROSS JOIN"])  # fmt: skip
            right, relation = self._relation(0 if kind == "CROSS JOIN" else depth)
            both = Scope([*scope.relations, relation])
            if kind == "CROSS JOIN":
                text += f" CROSS JOIN {right}"
            else:
                text += f" {kind} {right} ON {self._on(scope, relation, both)}"
            if "SEMI" not in kind and "ANTI" not in kind:
                scope.relations.append(relation)
            if kind == "CROSS JOIN":
                break
        if rng.random() < 0.1:
            text = self._generated(text, scope)
        return text, scope

    def _on(self, scope: Scope, relation: Relation, both: Scope) -> str:
        rng = self._rng
        equal = []
        for name, kind in rng.sample(relation.columns, len(relation.columns)):
            mine = scope.names(kind)
            mine = [m for m in mine if m.endswith(f".{name}")] or mine  # keys that meet
            if mine and self._joins(kind) and name != "id":
                operator = rng.choice(["=", "=", "=", "<=>"])
                equal.append(f"{rng.choice(mine)} {operator} {relation.alias}.{name}")
            if len(equal) == 2:
                break
        parts = equal[: rng.choice([1, 1, 1, 2])]
        if not parts:  # else the rows of three tables multiply
            name, kind = relation.columns[0]
            parts = [f"{relation.alias}.{name} = {self._literals(kind)[-1]}"]
        if rng.random() < 0.3:
            parts.append(self.predicate(both, 0, 0))
        return " AND ".join(parts)

    def _relation(self, depth: int) -> tuple[str, Relation]:
        rng = self._rng
        alias = self._alias()
        if depth and rng.random() < 0.3:
            kinds = self._kinds(rng.randint(2, 4))
            return f"({self._body(kinds, depth - 1, [])}) {alias}", Relation(alias, outputs(kinds))
        if self._ctes and rng.random() < 0.4:
            cte = rng.choice(self._ctes)
            return f"{cte.alias} {alias}", Relation(alias, cte.columns)
        if rng.random() < 0.05:
            rows = ", ".join(f"({rng.choice(_LITERALS['int'])}, {rng.choice(_LITERALS['string'])})" for _ in range(3))  # fmt: skip
            return f"(VALUES {rows}) {alias}(c0, c1)", Relation(alias, (("c0", "int"), ("c1", "string")))  # fmt: skip
        return f"{rng.choice(['x', 'y', 'z', 'y'])} {alias}", Relation(alias, _TABLE)

    def _generated(self, text: str, scope: Scope) -> str:
        rng = self._rng
        alias = self._alias()
        items = ", ".join(rng.choice([*scope.names("int"), *_LITERALS["int"]]) for _ in range(2))
        outer = rng.choice(["", "OUTER "])
        scope.relations.append(Relation(alias, (("e", "int"),)))
        return f"{text} LATERAL VIEW {outer}explode(array({items})) {alias} AS e"

    def _literals(self, kind: Kind) -> list[str]:
        return _LITERALS[kind]

    def _joins(self, kind: Kind) -> bool:
        """Whether columns of a type are keys of joins: not if they have few values."""
        return kind != "boolean"

    def _alias(self) -> str:
        self._aliases += 1
        return f"t{self._aliases}"

    # ------------------------------------------------------------ expressions

    def value(self, kind: Kind, scope: Scope, deep: int, depth: int) -> str:
        """An expression of a type.

        Args:
            kind: The type.
            scope: Names.
            deep: How deep functions nest.
            depth: How deep queries nest.
        """
        rng = self._rng
        names = scope.names(kind)
        literal = rng.choice(self._literals(kind))
        column = rng.choice(names) if names and rng.random() < 0.95 else literal
        if deep == 0 or rng.random() < 0.35:
            return column
        if depth and rng.random() < 0.08:
            return self._scalar_subquery(kind, scope, depth - 1)
        one, two = self.value(kind, scope, deep - 1, depth), self.value(kind, scope, deep - 1, 0)
        common = [
            f"coalesce({one}, {literal})",
            f"CASE WHEN {self.predicate(scope, 0, depth)} THEN {one} ELSE {two} END",
            f"nullif({one}, {literal})",
        ]
        return rng.choice([*common, *self._special(kind, one, two, literal, scope)])

    def _special(self, kind: Kind, one: str, two: str, literal: str, scope: Scope) -> list[str]:
        text, day = self.value("string", scope, 0, 0), self.value("date", scope, 0, 0)
        number = self.value("int", scope, 0, 0)
        return {
            "int": [f"({one} % 7)", f"abs({one} % 5)", f"length({text})", f"year({day})", f"greatest({one}, {two})", f"datediff({day}, DATE'2000-01-01')", f"(({one} % 9) + {literal})"],
            "bigint": [f"({one} % 11)", f"CAST({number} AS BIGINT)", f"({one} div 2)"],
            "string": [f"concat({one}, '-')", f"substring({one}, 1, 2)", f"CAST({number} AS STRING)", f"upper({one})", f"trim({one})", f"CASE WHEN {one} LIKE '%a%' THEN {two} END"],
            "decimal": [f"CAST(({one} + {literal}) % 100 AS DECIMAL(10,2))", f"CAST(round({one}, 1) AS DECIMAL(12,2))", f"CAST({number} AS DECIMAL(12,2))", f"least({one}, {two})"],
            "date": [f"date_add({day}, {rng_days(self._rng)})", f"last_day({one})", f"add_months({one}, 1)", f"trunc({one}, 'MONTH')"],
            "boolean": [f"(NOT {one})", self.predicate(scope, 0, 0), f"({one} IS NULL)", f"({one} <=> {two})"],
        }[kind]  # fmt: skip

    def predicate(self, scope: Scope, deep: int, depth: int) -> str:
        """A condition; with a depth it may hold subqueries, under OR and NOT too."""
        rng = self._rng
        kind = rng.choice(["int", "int", "string", "decimal", "date", "bigint"])
        left = self.value(kind, scope, min(deep, 1), 0)
        right = rng.choice([self.value(kind, scope, 0, 0), rng.choice(_LITERALS[kind])])
        correlated = scope.outer_names(kind)
        if correlated and rng.random() < 0.4:
            right = rng.choice(correlated)
        if depth and rng.random() < 0.3:
            plain = self._subquery_predicate(kind, left, scope, depth - 1)
        else:
            plain = rng.choice([
                f"{left} {rng.choice(_COMPARE)} {right}",
                f"({left} IS {rng.choice(['', 'NOT ', 'NOT '])}NULL)",
                f"{left} IN ({', '.join(_LITERALS[kind])})",
                f"{left} NOT IN ({rng.choice(_LITERALS[kind])}, {right})",
                f"({left} BETWEEN {rng.choice(_LITERALS[kind])} AND {right})",
            ])  # fmt: skip
        plain = f"({plain})"
        if deep == 0 or rng.random() < 0.5:
            return plain
        other = self.predicate(scope, deep - 1, depth)
        return rng.choice([f"({plain} AND {other})", f"({plain} OR {other})", f"({plain} OR {other})", f"NOT ({plain})"])  # fmt: skip

    # ------------------------------------------------------------ subqueries

    def _inner(self, scope: Scope, depth: int) -> tuple[str, Scope]:
        """FROM and WHERE of a subquery, mostly correlated."""
        rng = self._rng
        source, inner = self._from(min(depth, 1) if rng.random() < 0.3 else 0, [])
        inner.outer = list(scope.relations)
        parts = []
        if rng.random() < 0.8:
            kind = rng.choice(["int", "string", "bigint", "date"])
            mine, theirs = inner.names(kind), inner.outer_names(kind)
            if mine and theirs:
                operator = rng.choice(["=", "=", "=", "<", "<>", "<=>"])
                parts.append(f"{rng.choice(mine)} {operator} {rng.choice(theirs)}")
        if rng.random() < 0.5:
            parts.append(self.predicate(Scope(inner.relations), 1, 0))
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        return f"{source}{where}", inner

    def _scalar_subquery(self, kind: Kind, scope: Scope, depth: int) -> str:
        source, inner = self._inner(scope, depth)
        return f"(SELECT {self._aggregate(kind, Scope(inner.relations))} FROM {source})"

    def _subquery_predicate(self, kind: Kind, left: str, scope: Scope, depth: int) -> str:
        rng = self._rng
        form = rng.choice(["exists", "exists", "in", "in", "scalar"])
        if form == "scalar":
            return f"{left} {rng.choice(_COMPARE)} {self._scalar_subquery(kind, scope, depth)}"
        source, inner = self._inner(scope, depth)
        negated = rng.choice(["", "NOT "])
        if form == "exists":
            return f"{negated}EXISTS (SELECT 1 FROM {source})"
        member = self.value(kind, Scope(inner.relations), 0, 0)
        return f"{left} {negated}IN (SELECT {member} FROM {source})"

    # ------------------------------------------------------------ aggregates, windows

    def _aggregate(self, kind: Kind, scope: Scope) -> str:
        rng = self._rng
        value = self.value(kind, scope, 1, 0)
        where = f" FILTER (WHERE {self.predicate(scope, 0, 0)})" if rng.random() < 0.2 else ""
        if kind == "bigint" and rng.random() < 0.8:
            other = self.value(rng.choice(KINDS), scope, 1, 0)
            number = self.value("int", scope, 1, 0)
            return rng.choice([f"count(*){where}", f"count({other}){where}", f"count(DISTINCT {other})", f"sum({number}){where}"])  # fmt: skip
        if kind == "boolean":
            return f"{rng.choice(['bool_and', 'bool_or'])}({value}){where}"
        if kind == "decimal" and rng.random() < 0.4:
            return f"CAST(avg({self.value('int', scope, 0, 0)} * 1.0) AS DECIMAL(12,2)){''}"
        return f"{rng.choice(['min', 'max'])}({value}){where}"

    def _windowed(self, kind: Kind, scope: Scope) -> str:
        rng = self._rng
        keys = [self.value(k, scope, 0, 0) for k in rng.sample(KINDS, rng.randint(0, 2))]
        partition = f"PARTITION BY {', '.join(keys)}" if keys else ""
        order = ", ".join(
            f"{self.value(k, scope, 0, 0)}{rng.choice(['', ' DESC', ' NULLS LAST'])}"
            for k in rng.sample(("int", "string", "date", "decimal"), rng.randint(1, 2))
        )
        if kind == "int" and rng.random() < 0.5:
            return f"{rng.choice(['rank', 'dense_rank'])}() OVER ({partition} ORDER BY {order})"
        frame = rng.choice(["", f"ORDER BY {order}", f"ORDER BY {order} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", f"ORDER BY {order} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"])  # fmt: skip
        call = self._aggregate(kind, scope)
        if call.startswith("CAST(") or "DISTINCT" in call or "FILTER" in call:
            call = f"max({self.value(kind, scope, 0, 0)})"
        return f"{call} OVER ({partition} {frame})"


def outputs(kinds: Sequence[Kind]) -> tuple[tuple[str, Kind], ...]:
    """Columns `c0`, `c1`, … of these types."""
    return tuple((f"c{i}", kind) for i, kind in enumerate(kinds))


def rng_days(rng: random.Random) -> int:
    """A number of days that keeps dates in range."""
    return rng.choice([-40, -1, 0, 1, 31, 366])
