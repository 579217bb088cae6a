"""Expand `*` in a select list: of all relations, of one, of a struct, with EXCEPT."""

from __future__ import annotations

from sqlglot import exp

from stagecoach.planner.analysis.scope import Relation, Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions.macros.members import get_field
from stagecoach.planner.functions.registry import make_call
from stagecoach.planner.plan.expressions import Call, ColumnRef, Expression, Literal
from stagecoach.planner.syntax.places import located
from stagecoach.planner.tree import walk
from stagecoach.planner.types import STRING

Items = list[tuple[str, Expression]]


def is_star(item: exp.Expr) -> bool:
    """Whether a select item is `*` or `x.*`."""
    return isinstance(item, exp.Star) or (
        isinstance(item, exp.Column | exp.Dot) and isinstance(_star_of(item), exp.Star)
    )


def _star_of(item: exp.Expr) -> exp.Expr:
    if isinstance(item, exp.Dot):
        return item.expression
    return item.this if isinstance(item, exp.Column) else item


def star_items(item: exp.Expr, scope: Scope) -> Items:
    """The select items that a star stands for.

    Raises:
        AnalysisError: For an unknown relation, and for names in EXCEPT that are not there.
        UnsupportedSqlError: For what Spark's SQL has not, such as REPLACE.
    """
    star = _star_of(item)
    with located(item):
        if any(star.args.get(k) for k in ("replace", "rename", "ilike")):
            raise UnsupportedSqlError("* with REPLACE or RENAME is not SQL of Spark")
        if isinstance(item, exp.Dot):
            raise UnsupportedSqlError(f"'{item.sql()}'")
        parts = [p.name for p in item.parts[:-1]] if isinstance(item, exp.Column) else []
        items = _expanded(parts, scope)
        dropped = star.args.get("except_") or star.args.get("except")
        return _without(items, dropped, parts, scope) if dropped else items


def _expanded(parts: list[str], scope: Scope) -> Items:
    around: Scope | None = scope
    while around is not None:
        relations = [r for r in around.relations if not parts or r.answers_to(parts)]
        if relations:
            return _columns(relations, around, bool(parts))
        around = around.parent if parts else None  # LATERAL sees the relations before it
    if not parts:
        raise AnalysisError("* needs a FROM clause")
    value = scope.find(parts)
    if value is None:
        raise AnalysisError(f"table or alias '{'.'.join(parts)}' not found")
    if value.dtype.kind != "struct":
        raise AnalysisError(f"'{'.'.join(parts)}' is a {value.dtype}, which has no members for *")
    return [(f.name, get_field(value, f.name)) for f in value.dtype.fields]


def _columns(relations: list[Relation], scope: Scope, is_qualified: bool) -> Items:
    keys = list(scope.merged)  # of USING: they stand first, in a qualified star too
    items: Items = []
    if not is_qualified:
        items = [(_merged_name(scope, key), e) for key, e in scope.merged.items()]
    for relation in relations:
        own = [c for c in relation.columns if c.id not in scope.hidden]
        if is_qualified:
            shared = [c for c in relation.columns if c.id in scope.hidden]
            own = [*sorted(shared, key=lambda c: keys.index(c.name.lower())), *own]
        items.extend((c.name, c.ref) for c in own)
    return items


def _merged_name(scope: Scope, key: str) -> str:
    return next(c.name for r in scope.relations for c in r.columns if c.name.lower() == key)


def _without(items: Items, dropped: list[exp.Expr], parts: list[str], scope: Scope) -> Items:
    """The items but those that EXCEPT names."""
    gone: list[Expression] = []
    for node in dropped:
        with located(node):
            found = _dropped(node, items, parts, scope)
            if found in gone:
                raise AnalysisError(f"EXCEPT names '{node.sql()}' twice")
        gone.append(found)
    return [(name, without_members(e, gone)) for name, e in items if e not in gone]


def without_members(value: Expression, gone: list[Expression]) -> Expression:
    """A struct without some of its members, and of those that are structs without theirs."""
    if value.dtype.kind != "struct" or not any(value in walk(e) for e in gone):
        return value
    args: list[Expression] = []
    for member in value.dtype.fields:
        kept = get_field(value, member.name)
        if kept not in gone:
            args += [Literal(STRING, member.name), without_members(kept, gone)]
    if not args:
        raise UnsupportedSqlError("EXCEPT of all members of a struct")
    return make_call("named_struct", *args)


def _dropped(node: exp.Expr, items: Items, parts: list[str], scope: Scope) -> Expression:
    column = node if isinstance(node, exp.Column) else exp.Column(this=node.copy())
    if not isinstance(column.this, exp.Identifier):
        raise UnsupportedSqlError(f"EXCEPT of '{node.sql()}'")
    found = _named_item(items, column) if parts and not column.table else scope.column(column)
    inside = isinstance(found, Call) and found.function == "get_field"
    if not isinstance(found, ColumnRef) and not inside and not any(found == e for _, e in items):
        raise UnsupportedSqlError(f"EXCEPT of '{node.sql()}', a member of a struct")
    return found


def _named_item(items: Items, column: exp.Column) -> Expression:
    found = [e for name, e in items if name.lower() == column.name.lower()]
    if len(found) != 1:
        what = "is ambiguous" if found else "is not there"
        raise AnalysisError(f"column '{column.name}' of EXCEPT {what}")
    return found[0]
