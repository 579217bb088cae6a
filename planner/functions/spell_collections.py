"""Spell Spark's functions of arrays, maps and structs for DuckDB.

The engines differ in almost every function. DuckDB counts from 1, finds NULL elements with
`list_position`, sorts NULL members last where Spark sorts them first, and its set functions lose
the order of elements. Where Spark raises, the spelling raises too, and the stage runs again on
Spark. Names that end in `_` are parameters of the templates' own lambdas; no argument can contain
them.
"""

from __future__ import annotations

from collections.abc import Callable

from stagecoach.planner.functions.nested_rules import element, has_kind
from stagecoach.planner.functions.templates import escaped, quoted, quoted_name
from stagecoach.planner.plan.expressions import Call, Literal
from stagecoach.planner.text.quoting import spark_name
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import DataType

Spelling = Callable[[Call], str]


def duck_name(dtype: DataType) -> str:
    """DuckDB's name of a type, inside a template."""
    return escaped(duckdb_type(dtype))


def raises(condition: str) -> str:
    """DuckDB text that raises Spark's error condition."""
    return f"CAST(error('{condition}') AS {{type}})"


def null_of(dtype: DataType) -> str:
    """A typed NULL."""
    return f"CAST(NULL AS {duck_name(dtype)})"


def holds_null(array: str, dtype: DataType) -> str:
    """Whether an array (its text, its type) has a NULL element."""
    return f"list_position({array}, {null_of(element(dtype))}) IS NOT NULL"


# ---------------------------------------------------------------- order and equality


def order_key(text: str, dtype: DataType, depth: int = 0) -> str:
    """A value that DuckDB orders as Spark orders `text`: NULL members come first."""
    if dtype.is_atomic:
        return text
    if dtype.kind == "array":
        inner = order_key(f"k{depth}_", element(dtype), depth + 1)
        pair = f"struct_pack(n := k{depth}_ IS NOT NULL, v := {inner})"
        return f"list_transform({text}, lambda k{depth}_: {pair})"
    members = []
    for number, field in enumerate(dtype.fields):
        value = f"struct_extract({text}, {quoted(field.name)})"
        key = order_key(value, field.dtype, depth + 1)
        members += [f"n{number} := {value} IS NOT NULL", f"v{number} := {key}"]
    return f"CASE WHEN {text} IS NOT NULL THEN struct_pack({', '.join(members)}) END"


def normalized(text: str, dtype: DataType, depth: int = 0) -> str:
    """The value with 0.0 for each -0.0 in it, as Spark shows group keys."""
    if not has_kind(dtype, "float", "double"):
        return text
    if dtype.is_atomic:
        return f"({text} + CAST(0 AS {duck_name(dtype)}))"
    if dtype.kind == "array":
        inner = normalized(f"k{depth}_", element(dtype), depth + 1)
        return f"list_transform({text}, lambda k{depth}_: {inner})"
    members = []
    for field in dtype.fields:
        value = f"struct_extract({text}, {quoted(field.name)})"
        value = normalized(value, field.dtype, depth + 1)
        members.append(f"{quoted_name(field.name)} := {value}")
    return f"CASE WHEN {text} IS NOT NULL THEN struct_pack({', '.join(members)}) END"


def nested_cast(
    source: DataType, target: DataType, cast: Callable[[DataType, DataType], str | None]
) -> str | None:
    """Template of a cast of an array, map or struct, member by member; None where there is none.

    Args:
        source: Type of the value, which has members.
        target: Another type.
        cast: Template of a member's cast.
    """
    if source.kind != target.kind or len(source.fields) != len(target.fields):
        return None
    pairs = list(zip(source.fields, target.fields, strict=True))
    templates = [
        "{0}" if mine.dtype == theirs.dtype else _void_or(cast, mine.dtype, theirs.dtype)
        for mine, theirs in pairs
    ]
    if any(t is None for t in templates):
        return None
    texts = [
        lambda arg, t=t, f=f: t.format(arg, type=duckdb_type(f.dtype))
        for t, (_, f) in zip(templates, pairs, strict=True)
    ]
    if source.kind == "array":
        name = f"e{_height(source)}_"
        return f"list_transform({{0}}, lambda {name}: {escaped(texts[0](name))})"
    if source.kind == "map":
        key, wanted = pairs[0][0].dtype, pairs[0][1].dtype
        if key != wanted and not (key.is_integral and wanted.is_integral):
            return None  # NOTE: two keys may become one.
        name = f"e{_height(source)}_"
        keys, values = (
            f"list_transform({part}({{0}}), lambda {name}: {escaped(text(name))})"
            for part, text in zip(("map_keys", "map_values"), texts, strict=True)
        )
        return f"CASE WHEN {{0}} IS NOT NULL THEN map({keys}, {values}) END"
    members = []
    for (mine, theirs), template in zip(pairs, templates, strict=True):
        value = f"struct_extract({{0}}, {quoted(mine.name)})"
        text = escaped((template or "").format("\x00", type=duckdb_type(theirs.dtype)))
        members.append(f"{quoted_name(theirs.name)} := {text.replace(chr(0), value)}")
    return f"CASE WHEN {{0}} IS NOT NULL THEN struct_pack({', '.join(members)}) END"


def _void_or(
    cast: Callable[[DataType, DataType], str | None], source: DataType, target: DataType
) -> str | None:
    return "CAST({0} AS {type})" if source.kind == "void" else cast(source, target)


def _height(dtype: DataType) -> int:
    return 1 + max((_height(f.dtype) for f in dtype.fields), default=0)


# ---------------------------------------------------------------- members


def get_field(node: Call) -> str:
    """A member of a struct."""
    return f"struct_extract({{0}}, {quoted(_name(node))})"


def get_fields(node: Call) -> str:
    """A member of every element."""
    return f"list_transform({{0}}, lambda x_: struct_extract(x_, {quoted(_name(node))}))"


def spark_field(node: Call) -> str:
    """A member on Spark, of a struct or of an array of structs."""
    return "({0})." + escaped(spark_name(_name(node)))


def _name(node: Call) -> str:
    name = node.args[1]
    return str(name.value) if isinstance(name, Literal) else ""


ARRAY_ITEM = (
    "CASE WHEN {1} >= len({0}) OR ({1} < 0 AND {0} IS NOT NULL) "
    f"THEN {raises('INVALID_ARRAY_INDEX')} ELSE list_extract({{0}}, {{1}} + 1) END"
)
MAP_ITEM = "map_extract_value({0}, {1})"


def element_at(node: Call) -> str:
    """An element by its position from 1 or from the end, or a value by its key."""
    if node.args[0].dtype.kind == "map":
        return MAP_ITEM
    return (
        "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN " + raises("INVALID_INDEX_OF_ZERO") + " "
        "WHEN abs(CAST({1} AS BIGINT)) > len({0}) THEN " + raises("INVALID_ARRAY_INDEX") + " "
        "ELSE list_extract({0}, {1}) END"
    )


def try_element_at(node: Call) -> str:
    """The same with NULL beyond the ends."""
    if node.args[0].dtype.kind == "map":
        return MAP_ITEM
    return (
        "CASE WHEN {1} = 0 AND {0} IS NOT NULL THEN " + raises("INVALID_INDEX_OF_ZERO") + " "
        "ELSE list_extract({0}, {1}) END"
    )


def named_struct(node: Call) -> str:
    """A struct of named values."""
    pairs = [
        f"{quoted_name(field.name)} := {{{2 * number + 1}}}"
        for number, field in enumerate(node.dtype.fields)
    ]
    return f"struct_pack({', '.join(pairs)})"


# ---------------------------------------------------------------- arrays


def array(node: Call) -> str:
    """An array of values."""
    if not node.args:
        return "CAST([] AS {type})"
    return "list_value(" + ", ".join(f"{{{i}}}" for i in range(len(node.args))) + ")"


def array_contains(node: Call) -> str:
    """Whether a value is an element; NULL if it may be the NULL element."""
    null = holds_null("{0}", node.args[0].dtype)
    return (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
        f"WHEN list_position({{0}}, {{1}}) IS NOT NULL THEN true WHEN {null} THEN NULL "
        "ELSE false END"
    )


def distinct(text: str) -> str:
    """The first of equal elements."""
    return f"list_filter({text}, lambda x_, i_: list_position({text}, x_) = i_)"


def array_distinct(node: Call) -> str:
    """The elements, each once; Spark's set functions give 0.0 for -0.0."""
    return distinct(normalized("{0}", node.args[0].dtype))


def array_union(node: Call) -> str:
    """The elements of two arrays, each once."""
    return distinct(normalized("({0} || {1})", node.args[0].dtype))


def array_except(node: Call) -> str:
    """The elements, each once, that the other array has not."""
    return _chosen(node, "IS NULL")


def array_intersect(node: Call) -> str:
    """The elements, each once, that the other array has too."""
    return _chosen(node, "IS NOT NULL")


def _chosen(node: Call, test: str) -> str:
    left = normalized("{0}", node.args[0].dtype)
    chosen = f"list_position({left}, x_) = i_ AND list_position({{1}}, x_) {test}"
    return f"CASE WHEN {{1}} IS NOT NULL THEN list_filter({left}, lambda x_, i_: {chosen}) END"


ARRAY_POSITION = (
    "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
    "THEN CAST(coalesce(list_position({0}, {1}), 0) AS BIGINT) END"
)
ARRAY_REMOVE = (
    "CASE WHEN {1} IS NOT NULL "
    "THEN list_filter({0}, lambda x_: x_ IS DISTINCT FROM {1}) END"
)  # fmt: skip
EXISTS = "list_reduce(list_transform({0}, {1}), lambda a_, x_: a_ OR x_, false)"
FORALL = "list_reduce(list_transform({0}, {1}), lambda a_, x_: a_ AND x_, true)"


def arrays_overlap(node: Call) -> str:
    """Whether two arrays share an element; NULL if they may share the NULL one."""
    nulls = " OR ".join(holds_null(f"{{{i}}}", node.args[i].dtype) for i in (0, 1))
    shared = "list_filter({0}, lambda x_: x_ IS NOT NULL AND list_position({1}, x_) IS NOT NULL)"
    return (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
        f"WHEN len({shared}) > 0 THEN true "
        f"WHEN len({{0}}) > 0 AND len({{1}}) > 0 AND ({nulls}) THEN NULL ELSE false END"
    )


def array_join(node: Call) -> str:
    """The elements as one text; NULLs left out or replaced."""
    elements = "list_filter({0}, lambda x_: x_ IS NOT NULL)"
    present = "{0} IS NOT NULL AND {1} IS NOT NULL"
    if len(node.args) == 3:
        elements = "list_transform({0}, lambda x_: coalesce(x_, {2}))"
        present += " AND {2} IS NOT NULL"
    if isinstance(node.args[1], Literal):
        # NOTE: DuckDB has no text for an array without values, and takes no computed separator.
        return f"CASE WHEN {present} THEN coalesce(array_to_string({elements}, {{1}}), '') END"
    joined = f"list_reduce({elements}, lambda a_, x_: a_ || {{1}} || x_)"
    return f"CASE WHEN {present} THEN CASE WHEN len({elements}) > 0 THEN {joined} ELSE '' END END"


def extreme(function: str) -> Spelling:
    """The first smallest or largest element, NULLs apart."""

    def spell(node: Call) -> str:
        inner = element(node.args[0].dtype)
        if inner.is_atomic and not inner.is_floating:
            return f"{function}({{0}})"
        keys = "{0}"
        if not inner.is_atomic:
            keys = f"list_transform({{0}}, lambda x_: {order_key('x_', inner)})"
        return f"list_extract({{0}}, list_position({keys}, {function}({keys})))"

    return spell


def sort_array(node: Call) -> str:
    """The elements in order, NULLs as the smallest."""
    flag = node.args[1] if len(node.args) > 1 else None
    descending = isinstance(flag, Literal) and flag.value is False
    return _sorted(node, descending=descending, nulls_first=not descending)


def array_sort(node: Call) -> str:
    """The elements in ascending order, NULLs last."""
    return _sorted(node, descending=False, nulls_first=False)


def _sorted(node: Call, *, descending: bool, nulls_first: bool) -> str:
    inner = element(node.args[0].dtype)
    order = "'DESC'" if descending else "'ASC'"
    nulls = "'NULLS FIRST'" if nulls_first else "'NULLS LAST'"
    if inner.is_atomic and not inner.is_floating:
        return f"list_sort({{0}}, {order}, {nulls})"
    # DuckDB gives 0.0 for -0.0, and orders NULL members otherwise: the keys are sorted by place.
    present = "x_ IS NOT NULL" if nulls_first != descending else "x_ IS NULL"
    place = "-i_" if descending else "i_"
    entry = f"struct_pack(n := {present}, v := {order_key('x_', inner)}, i := {place})"
    pairs = f"list_sort(list_transform({{0}}, lambda x_, i_: {entry}), {order}, {nulls})"
    return f"list_transform({pairs}, lambda s_: list_extract({{0}}, abs(s_.i)))"


SLICE = (
    "CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
    "WHEN {1} = 0 THEN " + raises("INVALID_PARAMETER_VALUE") + " "
    "WHEN {2} < 0 THEN " + raises("INVALID_PARAMETER_VALUE") + " "
    "WHEN len({0}) + {1} < 0 THEN CAST([] AS {type}) "
    "ELSE list_slice({0}, CASE WHEN {1} > 0 THEN {1} ELSE len({0}) + {1} + 1 END, "
    "CASE WHEN {1} > 0 THEN CAST({1} AS BIGINT) ELSE len({0}) + {1} + 1 END + {2} - 1) END"
)
ARRAY_INSERT = (
    "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
    "WHEN {1} = 0 THEN " + raises("INVALID_INDEX_OF_ZERO") + " "
    "WHEN abs(CAST({1} AS BIGINT)) > 1000000 THEN " + raises("COLLECTION_SIZE_LIMIT_EXCEEDED") + " "
    "WHEN {1} > len({0}) THEN {0} || list_resize(CAST([] AS {type}), {1} - 1 - len({0})) "
    "|| list_value({2}) "
    "WHEN {1} > 0 THEN list_slice({0}, 1, {1} - 1) || list_value({2}) "
    "|| list_slice({0}, {1}, len({0})) "
    "WHEN len({0}) + {1} + 1 >= 0 THEN list_slice({0}, 1, len({0}) + {1} + 1) || list_value({2}) "
    "|| list_slice({0}, len({0}) + {1} + 2, len({0})) "
    "ELSE list_value({2}) || list_resize(CAST([] AS {type}), -{1} - 1 - len({0})) || {0} END"
)


def flatten(node: Call) -> str:
    """The elements of an array's arrays; NULL where one of these is."""
    return f"CASE WHEN NOT ({holds_null('{0}', node.args[0].dtype)}) THEN flatten({{0}}) END"


def concat(node: Call) -> str:
    """One array after the other."""
    return "(" + " || ".join(f"{{{i}}}" for i in range(len(node.args))) + ")"


def arrays_zip(node: Call) -> str:
    """Structs of the elements at each place."""
    places = range(1, len(node.args), 2)
    members = ", ".join(
        f"{quoted_name(field.name)} := struct_extract(z_, {number + 1})"
        for number, field in enumerate(element(node.dtype).fields)
    )
    present = " AND ".join(f"{{{i}}} IS NOT NULL" for i in places)
    lists = ", ".join(f"{{{i}}}" for i in places)
    return (
        f"CASE WHEN {present} THEN "
        f"list_transform(list_zip({lists}), lambda z_: struct_pack({members})) END"
    )


def sequence(node: Call) -> str:
    """Whole numbers from one to another."""
    start, stop = "CAST({0} AS BIGINT)", "CAST({1} AS BIGINT)"
    step = "CASE WHEN {0} <= {1} THEN 1 ELSE -1 END"
    wrong = ""
    if len(node.args) == 3:
        step = "CAST({2} AS BIGINT)"
        wrong = (
            "WHEN ({0} < {1} AND {2} <= 0) OR ({0} > {1} AND {2} >= 0) "
            "THEN " + raises("ILLEGAL_SEQUENCE_BOUNDARIES") + " "
        )
    size = f"abs((CAST({stop} AS HUGEINT) - {start}) // nullif({step}, 0))"
    numbers = f"generate_series({start}, {stop}, {step})"
    present = " OR ".join(f"{{{i}}} IS NULL" for i in range(len(node.args)))
    return (
        f"CASE WHEN {present} THEN NULL {wrong}"
        f"WHEN {{0}} = {{1}} THEN list_value({{0}}) "
        f"WHEN {size} > 10000000 THEN " + raises("COLLECTION_SIZE_LIMIT_EXCEEDED") + " "
        f"ELSE CAST({numbers} AS {{type}}) END"
    )


# ---------------------------------------------------------------- lambdas


def let(bindings: list[tuple[str, str]], body: str) -> str:
    """The body with names bound to values: DuckDB has no other way to name a value in a lambda."""
    for name, value in reversed(bindings):
        body = f"list_extract(list_transform(list_value({value}), lambda {name}: {body}), 1)"
    return body


def aggregate(node: Call) -> str:
    """A fold from the left, and a last step where there is one."""
    folded = "list_reduce({0}, {2}, {1})"
    if len(node.args) == 3:
        return folded
    return f"CASE WHEN {{0}} IS NOT NULL THEN {let([('{p3_0}', folded)], '{b3}')} END"


_ZIP = let([("{p2_0}", "struct_extract(z_, 1)"), ("{p2_1}", "struct_extract(z_, 2)")], "{b2}")
ZIP_WITH = (
    "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
    f"THEN list_transform(list_zip({{0}}, {{1}}), lambda z_: {_ZIP}) END"
)
_ENTRY = let([("{p1_0}", "e_.key"), ("{p1_1}", "e_.value")], "{b1}")
MAP_FILTER = f"map_from_entries(list_filter(map_entries({{0}}), lambda e_: {_ENTRY}))"
TRANSFORM_KEYS = (
    "CASE WHEN {0} IS NOT NULL THEN "
    f"map(list_transform(map_entries({{0}}), lambda e_: {_ENTRY}), map_values({{0}})) END"
)
TRANSFORM_VALUES = (
    "CASE WHEN {0} IS NOT NULL THEN "
    f"map(map_keys({{0}}), list_transform(map_entries({{0}}), lambda e_: {_ENTRY})) END"
)
_KEYS = (
    "(map_keys({0}) || list_filter(map_keys({1}), "
    "lambda x_: list_position(map_keys({0}), x_) IS NULL))"
)
_BOTH = let(
    [
        ("{p2_0}", "k_"),
        ("{p2_1}", "map_extract_value({0}, k_)"),
        ("{p2_2}", "map_extract_value({1}, k_)"),
    ],
    "{b2}",
)
MAP_ZIP_WITH = (
    "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
    f"THEN map({_KEYS}, list_transform({_KEYS}, lambda k_: {_BOTH})) END"
)


# ---------------------------------------------------------------- maps


def map_of_pairs(node: Call) -> str:
    """A map of keys and values in turn; a key twice, or NULL, raises."""
    keys = ", ".join(f"{{{i}}}" for i in range(0, len(node.args), 2))
    values = ", ".join(f"{{{i}}}" for i in range(1, len(node.args), 2))
    return f"map(list_value({keys}), list_value({values}))"


def map_from_entries(node: Call) -> str:
    """A map of an array of structs; NULL where one of these is."""
    entry = element(node.args[0].dtype)
    keys, values = (
        f"list_transform({{0}}, lambda x_: struct_extract(x_, {quoted(f.name)}))"
        for f in entry.fields
    )
    null = holds_null("{0}", node.args[0].dtype)
    return f"CASE WHEN {{0}} IS NOT NULL AND NOT ({null}) THEN map({keys}, {values}) END"


def map_concat(node: Call) -> str:
    """All entries; a key twice raises."""
    count = range(len(node.args))
    keys = " || ".join(f"map_keys({{{i}}})" for i in count)
    values = " || ".join(f"map_values({{{i}}})" for i in count)
    present = " AND ".join(f"{{{i}}} IS NOT NULL" for i in count)
    return f"CASE WHEN {present} THEN map({keys}, {values}) END"


MAP_CONTAINS_KEY = (
    "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
    "THEN list_position(map_keys({0}), {1}) IS NOT NULL END"
)
STR_TO_MAP = (
    "CASE WHEN {0} IS NOT NULL THEN map("
    "list_transform(string_split({0}, {1}), lambda x_: string_split(x_, {2})[1]), "
    "list_transform(string_split({0}, {1}), lambda x_: CASE WHEN contains(x_, {2}) "
    "THEN substring(x_, position({2} IN x_) + length({2})) END)) END"
)
