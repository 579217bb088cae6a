"""Spell TO_CSV and FROM_CSV for DuckDB, for texts that Spark's CSV library reads only one way.

A text with a quote in another place than around a whole field, with a line end or with a NUL
raises, and its stage runs again on Spark. Source: `UnivocityGenerator` and `UnivocityParser`.
"""

from __future__ import annotations

import re

from stagecoach.planner.functions import csv_options
from stagecoach.planner.functions.casts import cast_template
from stagecoach.planner.functions.csv_options import CsvOptions
from stagecoach.planner.functions.json_texts import moment_text
from stagecoach.planner.functions.spell_collections import duck_name
from stagecoach.planner.functions.spell_from_json import is_plain_struct
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.functions.time_casts import written_moment
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.types import STRING, DataType

# With more digits after the point Java writes small numbers with an exponent.
_MOST_PLACES = 6
_BLANKS = quoted("".join(map(chr, range(1, 33))))
_SPARK_ONLY = "CAST(error('SPARK_ONLY') AS {})"
_UNCLEAR = "CAST(error('CSV_IS_UNCLEAR') AS {})"


# ---------------------------------------------------------------- writing


def to_csv(node: Call) -> str:
    """TO_CSV of a struct."""
    options = csv_options.read(node, 1)
    assert options is not None, node
    fields = node.args[0].dtype.fields
    members = []
    for number, field in enumerate(fields):
        text = _text(field.dtype)
        assert text is not None, node
        text = text.replace("{0}", f"struct_extract({{0}}, {quoted(field.name)})")
        if field.dtype == STRING or field.dtype.is_interval:
            text = _written(text, options, first=number == 0)
        members.append(f"coalesce({text}, {quoted(options.null_value)})")
    line = f" || {quoted(options.separator)} || ".join(members)
    if len(fields) == 1:
        # Of a line without characters Spark makes a NULL that its compiled code fails on.
        line = f"coalesce(nullif({line}, ''), {_SPARK_ONLY.format('VARCHAR')})"
    return f"CASE WHEN {{0}} IS NOT NULL THEN {line} END"


def refuse_to_csv(node: Call) -> str | None:
    """Only options and types whose text is proven."""
    if csv_options.read(node, 1) is None:
        return "to_csv with such options is not proven"
    fields = node.args[0].dtype.fields
    odd = next((f.dtype for f in fields if _text(f.dtype) is None), None)
    return f"to_csv of {odd} is not proven" if odd else None if fields else "to_csv of nothing"


def _text(dtype: DataType) -> str | None:
    """Template of a member's text; None where there is none."""
    if dtype.kind in ("timestamp", "timestamp_ntz"):
        return moment_text(dtype)
    if dtype.is_decimal and not (dtype.scale <= _MOST_PLACES and dtype.precision > dtype.scale):
        return None
    if dtype == STRING:
        return "{0}"
    proven = dtype.is_numeric or dtype.is_interval or dtype.kind in ("boolean", "date")
    return cast_template(dtype, STRING).replace("{type}", "VARCHAR") if proven else None


def _written(text: str, options: CsvOptions, *, first: bool) -> str:
    """A text between quotes, where it needs them."""
    quote, escape = options.quote, options.escape
    # DuckDB's trim is slow, and few texts need it.
    blank = f"left({text}, 1) <= ' ' OR right({text}, 1) <= ' '"
    short = f"CASE WHEN {blank} THEN trim({text}, {_BLANKS}) ELSE {text} END"
    body = f"replace({short}, {quoted(quote)}, {quoted(escape + quote)})"
    if escape != quote:
        doubled = f"replace({short}, {quoted(escape)}, {quoted(escape * 2)})"
        body = body.replace(short, doubled)
    # What is trimmed off at the end decides, too.
    seen = f"CASE WHEN {blank} THEN ltrim({text}, {_BLANKS}) ELSE {text} END"
    tests = [f"contains({seen}, {quoted(c)})" for c in (options.separator, quote, "\n", "\r")]
    if first:
        tests.append(f"starts_with({text}, '#')")
    return (
        f"CASE WHEN {short} = '' THEN '\"\"' "
        f"WHEN contains({text}, chr(0)) THEN {_SPARK_ONLY.format('VARCHAR')} "
        f"WHEN {' OR '.join(tests)} THEN {quoted(quote)} || {body} || {quoted(quote)} "
        f"ELSE {short} END"
    )


# ---------------------------------------------------------------- reading


def from_csv(node: Call) -> str:
    """FROM_CSV of a line that has quotes around whole fields only."""
    options = csv_options.read(node, 2)
    assert options is not None, node
    split, quote = re.escape(options.separator), re.escape(options.quote)
    inside = f"[^{quote}{re.escape(options.escape)}\\r\\n\\x00]*"
    field = f"(?:{quote}{inside}{quote}|(?:[^{quote}{split}\\r\\n\\x00][^{split}\\r\\n\\x00]*)?)"
    line = quoted(f"{field}(?:{split}{field})*")
    found = quoted(f"({quote}{inside}{quote}|[^{split}]*){split}")
    fields = f"regexp_extract_all({{0}} || {quoted(options.separator)}, {found}, 1)"
    whole = f"starts_with(v_, {quoted(options.quote)})"
    # An empty field is NULL, one of two quotes is an empty text.
    value = (
        f"CASE WHEN {whole} THEN nullif(substring(v_, 2, length(v_) - 2), "
        f"{quoted(options.null_value)}) ELSE nullif(nullif(v_, ''), "
        f"{quoted(options.null_value)}) END"
    )
    members = ", ".join(
        f"{quoted(f.name)}: {field_value(f'w_[{number + 1}]', f.dtype)}"
        for number, f in enumerate(node.dtype.fields)
    )
    values = f"list_transform({fields}, lambda v_: {value})"
    struct = f"list_transform([{values}], lambda w_: {{{{{members}}}}})[1]"
    tests = (
        f"NOT regexp_full_match({{0}}, {line})",
        "starts_with({0}, chr(65279))",
        f"length({{0}}) > {csv_options.MOST_COLUMNS}",
    )
    return (
        "CASE WHEN {0} IS NULL THEN NULL "
        f"WHEN {' OR '.join(tests)} THEN {_UNCLEAR.format(duck_name(node.dtype))} "
        f"ELSE {struct} END"
    )


def refuse_from_csv(node: Call) -> str | None:
    """Why DuckDB must not read lines: options, and types whose texts have several forms."""
    if csv_options.read(node, 2) is None:
        return "from_csv with such options is not proven"
    if not is_plain_struct(node.dtype):
        return f"from_csv of {node.dtype} is not proven"
    odd = next((f.dtype for f in node.dtype.fields if not is_read_field(f.dtype)), None)
    return f"from_csv of {odd} is not proven" if odd else None


def is_read_field(dtype: DataType) -> bool:
    """Whether fields of CSV can be read as the type."""
    known = ("string", "boolean", "double", "date", "timestamp", "timestamp_ntz")
    return dtype.is_integral or dtype.is_decimal or dtype.kind in known


# Texts that have only one reading as a value, and beginnings that no number has.
_WHOLE = r"[+-]?[0-9]{1,20}"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_NO_NUMBER = r"^[A-HJ-MO-Za-z_/:;#@%&*()$ ]*[A-HJ-MO-Za-z_/:;#@%&*()$]"
_ASCII = r"[\x01-\x7f]*"


def field_value(text: str, dtype: DataType) -> str:
    """A field as a value of the type; NULL if it cannot be read as one."""
    if dtype == STRING:
        return text
    name = duck_name(dtype)
    plain = f"TRY_CAST({text} AS {name})"
    branches = [f"WHEN {text} IS NULL THEN NULL"]
    if dtype.is_integral:
        branches.append(f"WHEN {_is(text, _WHOLE)} THEN {plain}")
        branches.append(f"WHEN {_is(text, _ASCII)} THEN NULL")
    elif dtype.kind == "boolean":
        branches += [f"WHEN lower({text}) = '{v}' THEN {v}" for v in ("true", "false")]
        branches.append(f"WHEN {_is(text, _ASCII)} THEN NULL")
    elif dtype.kind == "double":
        branches.append(f"WHEN {_is(text, _NUMBER)} AND isfinite({plain}) THEN {plain}")
        branches.append(f"WHEN {_begins(text, _NO_NUMBER)} THEN NULL")
    elif dtype.is_decimal:
        places = rf"(\.[0-9]{{1,{dtype.scale}}})?" if dtype.scale else ""
        digits = dtype.precision - dtype.scale
        if digits:
            exact = rf"[+-]?[0-9]{{1,{digits}}}{places}"
            branches.append(f"WHEN {_is(text, exact)} THEN {plain}")
        branches.append(f"WHEN {_begins(text, _NO_NUMBER)} THEN NULL")
    else:
        test, value = written_moment(text, dtype)
        branches.append(f"WHEN {test} THEN {value}")
    return f"CASE {' '.join(branches)} ELSE {_UNCLEAR.format(name)} END"


def _is(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, {quoted(pattern)})"


def _begins(text: str, pattern: str) -> str:
    return f"regexp_matches({text}, {quoted(pattern)})"
