"""Seeded random queries over the join tables: in, a seed; out, SQL that Spark accepts."""

from __future__ import annotations

import random

_COLUMNS = {
    "int": ["k", "v", "id"],
    "bigint": ["kl"],
    "string": ["ks", "s"],
    "decimal": ["w", "kc"],
    "date": ["kt"],
    "boolean": ["kb"],
}
_LITERALS = {
    "int": ["0", "1", "3", "-2"],
    "bigint": ["1L", "2"],
    "string": ["'a'", "'ß'", "''"],
    "decimal": ["0.5", "1.25", "-3.00"],
    "date": ["DATE'1970-01-01'", "'2024-02-29'"],
    "boolean": ["true"],
}
_KEYS = ["k", "ks", "kc", "kt", "kd", "kb", "kl"]


class QueryMaker:
    """Makes queries from one seed.

    Args:
        seed: The same seed gives the same query.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def query(self) -> str:
        """One SELECT."""
        rng = self._rng
        sources, names = self._sources()
        where = f" WHERE {self.predicate(names, 2)}" if rng.random() < 0.7 else ""
        if rng.random() < 0.5:
            keys = [self.value(rng.choice(["int", "string", "date", "decimal"]), names, 0) for _ in range(rng.randint(0, 2))]  # fmt: skip
            calls = [self._aggregate(names) for _ in range(rng.randint(1, 3))]
            group = f" GROUP BY {', '.join(dict.fromkeys(keys))}" if keys else ""
            having = " HAVING count(*) > 1" if keys and rng.random() < 0.3 else ""
            items = ", ".join(f"{text} AS c{i}" for i, text in enumerate([*keys, *calls]))
            return f"SELECT {items} FROM {sources}{where}{group}{having}"
        kinds = [rng.choice(list(_COLUMNS)) for _ in range(rng.randint(1, 4))]
        items = ", ".join(f"{self.value(kind, names, 2)} AS c{i}" for i, kind in enumerate(kinds))
        distinct = "DISTINCT " if rng.random() < 0.2 else ""
        text = f"SELECT {distinct}{items} FROM {sources}{where}"
        if rng.random() < 0.25:
            count = len(kinds)
            keys = ", ".join(f"{i + 1}{rng.choice(['', ' DESC', ' NULLS LAST'])}" for i in range(count))  # fmt: skip
            limit = f" LIMIT {rng.randint(0, 30)}" if rng.random() < 0.5 else ""
            text += f" ORDER BY {keys}{limit}"
        elif rng.random() < 0.15 and not distinct:
            others = ", ".join(self.value(kind, names, 1) for kind in kinds)
            text += f" UNION {rng.choice(['ALL ', ''])}SELECT {others} FROM {sources}"
        return text

    def _sources(self) -> tuple[str, list[str]]:
        rng = self._rng
        names = ["a"]
        text = rng.choice(["x a", "y a", "(SELECT * FROM x WHERE v > -3) a", "(SELECT k, max(kl) AS kl, min(ks) AS ks, max(s) AS s, max(kd > 0) AS kb, sum(v) AS x, max(v) AS v, max(id) AS id, min(w) AS w, max(kc) AS kc, max(kt) AS kt, count(kd) AS kd FROM y GROUP BY k) a"])  # fmt: skip
        for name in ("b", "c")[: rng.choice([0, 1, 1, 2])]:
            kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])  # fmt: skip
            key = rng.choice([k for k in _KEYS if k != "kd"])
            more = f" AND {self.predicate([rng.choice(names), name], 0)}" if rng.random() < 0.4 else ""  # fmt: skip
            table = rng.choice(["x", "y", "z", "y"])
            text += f" {kind} {table} {name} ON {rng.choice(names)}.{key} = {name}.{key}{more}"
            if "SEMI" not in kind and "ANTI" not in kind:
                names.append(name)
        return text, names

    def value(self, kind: str, names: list[str], depth: int) -> str:
        """An expression of a type."""
        rng = self._rng
        column = f"{rng.choice(names)}.{rng.choice(_COLUMNS[kind])}"
        if depth == 0 or rng.random() < 0.4:
            return column
        one, two = self.value(kind, names, depth - 1), self.value(kind, names, depth - 1)
        literal = rng.choice(_LITERALS[kind])
        common = [
            f"coalesce({one}, {literal})",
            f"CASE WHEN {self.predicate(names, 0)} THEN {one} ELSE {two} END",
            f"nullif({one}, {literal})",
            one,
        ]
        special = {
            "int": [f"({one} + {two})", f"({one} * {literal})", f"(- {one})", f"length({self.value('string', names, 0)})", f"({one} % 3)", f"year({self.value('date', names, 0)})"],
            "bigint": [f"({one} - 1)", f"({one} div 2)"],
            "string": [f"concat({one}, '-', {two})", f"substring({one}, 1, 2)", f"CAST({self.value('int', names, 0)} AS STRING)"],
            "decimal": [f"({one} + {literal})", f"({one} * 2)", f"({one} * (1 - {two}))", f"round({one}, 1)", f"({one} / 4)"],
            "date": [f"date_add({one}, 31)", f"last_day({one})", f"add_months({one}, 1)"],
            "boolean": [f"(NOT {one})", self.predicate(names, 0)],
        }[kind]  # fmt: skip
        return rng.choice([*common, *special, *special])

    def predicate(self, names: list[str], depth: int) -> str:
        """A condition."""
        rng = self._rng
        kind = rng.choice(["int", "int", "string", "decimal", "date", "bigint"])
        left = self.value(kind, names, depth)
        right = rng.choice([self.value(kind, names, 0), rng.choice(_LITERALS[kind])])
        if depth and rng.random() < 0.25:
            return rng.choice(self._subqueries(names, left, kind))
        plain = rng.choice([
            f"{left} {rng.choice(['=', '<', '>', '<=', '<>', '<=>'])} {right}",
            f"{left} IS {rng.choice(['', 'NOT '])}NULL",
            f"{left} IN ({', '.join(_LITERALS[kind])})",
            f"{left} BETWEEN {rng.choice(_LITERALS[kind])} AND {right}",
        ])  # fmt: skip
        if depth == 0 or rng.random() < 0.5:
            return plain
        other = self.predicate(names, depth - 1)
        return rng.choice([f"({plain} AND {other})", f"({plain} OR {other})", f"NOT ({plain})"])

    def _subqueries(self, names: list[str], left: str, kind: str) -> list[str]:
        rng = self._rng
        outer = rng.choice(names)
        column = rng.choice(list(_COLUMNS[kind]))
        key = rng.choice(["k", "ks", "kl"])
        return [
            f"EXISTS (SELECT 1 FROM y q WHERE q.{key} = {outer}.{key})",
            f"NOT EXISTS (SELECT 1 FROM y q WHERE q.{key} = {outer}.{key} AND q.v > 0)",
            f"{outer}.{column} IN (SELECT q.{column} FROM y q)",
            f"{outer}.{column} NOT IN (SELECT q.{column} FROM y q WHERE q.v > 3)",
            f"{outer}.v > (SELECT avg(q.v) FROM y q WHERE q.{key} = {outer}.{key})",
            f"{outer}.v < (SELECT max(q.v) FROM x q)",
            f"(SELECT count(*) FROM y q WHERE q.{key} = {outer}.{key}) < 2",
        ]

    def _aggregate(self, names: list[str]) -> str:
        rng = self._rng
        number = self.value(rng.choice(["int", "decimal"]), names, 1)
        anything = self.value(rng.choice(list(_COLUMNS)), names, 1)
        return rng.choice([
            "count(*)", f"count({anything})", f"count(DISTINCT {anything})", f"sum({number})", f"avg({number})",
            f"min({anything})", f"max({anything})", f"sum({number}) FILTER (WHERE {self.predicate(names, 0)})",
        ])  # fmt: skip
