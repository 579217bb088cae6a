"""Decimal functions inside DuckDB equal arithmetic on Python's integers, for all pairs of types."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest

from stagecoach.infra.engines.duckdb.decimal_functions import DecimalFunctions
from stagecoach.infra.engines.duckdb.decimals import OPERATIONS, ROUNDINGS, DecimalError, compute
from stagecoach.planner.functions import rules
from stagecoach.planner.functions.spell_decimals import BIGINT_DIGITS, refuse_exact
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.text.decimal_calls import DecimalFunction, decimal_functions
from stagecoach.planner.types import DataType, decimal, to_arrow
from tests.decimal_values import exact, unscaled_values

RESULT_TYPES = {
    "add": rules.add_type,
    "subtract": rules.add_type,
    "multiply": rules.multiply_type,
    "divide": rules.divide_type,
    "div": lambda _: BIGINT_DIGITS,
    "mod": rules.mod_type,
    "pmod": rules.mod_type,
}
EDGES = [decimal(p, s) for p, s in ((1, 0), (1, 1), (9, 2), (18, 0), (18, 18), (19, 9), (38, 0), (38, 6), (38, 18), (38, 37), (38, 38))]  # fmt: skip


def _cut(value: Fraction) -> int:
    """A number without its fraction."""
    return abs(value.numerator) // value.denominator * (-1 if value < 0 else 1)


def _half_up(value: Fraction) -> int:
    return _cut(abs(value) + Fraction(1, 2)) * (-1 if value < 0 else 1)


def _mod(left: Fraction, right: Fraction) -> Fraction | None:
    whole = _cut(left / right)
    return None if abs(whole) >= 10**39 else left - whole * right


def _pmod(left: Fraction, right: Fraction) -> Fraction | None:
    rest = _mod(left, right)
    return rest if rest is None or rest >= 0 else _mod(rest + right, right)


EXACT: dict[str, Callable[[Fraction, Fraction], Fraction | None]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b if b else None,
    "div": lambda a, b: Fraction(_cut(a / b)) if b else None,
    "mod": lambda a, b: _mod(a, b) if b else None,
    "pmod": lambda a, b: _pmod(a, b) if b else None,
}


def _stored(value: Fraction, dtype: DataType) -> int | None:
    """The unscaled value at the type's scale; None if it does not fit."""
    unscaled = _half_up(value * 10**dtype.scale)
    return unscaled if abs(unscaled) < 10**dtype.precision else None


def _column(values: list[int | None], dtype: DataType) -> pa.ChunkedArray:
    with localcontext(prec=40):
        listed = [None if v is None else exact(v, dtype.scale) for v in values]
        return pa.chunked_array([pa.array(listed, to_arrow(dtype))])


def _unscaled(column: pa.Array, scale: int) -> list[int | None]:
    with localcontext(prec=60):
        return [None if v is None else int(v.scaleb(scale)) for v in column.to_pylist()]


def _pairs(operation: str) -> Iterator[tuple[DataType, DataType, DataType]]:
    every = [decimal(p, s) for p in range(1, 39) for s in range(p + 1)]
    chosen = random.Random(operation)
    pairs = [(a, b) for a in EDGES for b in EDGES]
    pairs += [(chosen.choice(every), chosen.choice(every)) for _ in range(300)]
    for left, right in pairs:
        result = RESULT_TYPES[operation]((Literal(left, None), Literal(right, None)))
        if refuse_exact(operation, (left, right), result) is None:
            yield left, right, result


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_results_are_exact_and_rounded_once(operation: str) -> None:
    chosen = random.Random(7)
    for left, right, result in _pairs(operation):
        one, two = (unscaled_values(chosen, dtype.precision, 24) for dtype in (left, right))
        small = [chosen.choice([3, -7, 25]) % 10**right.precision for _ in range(8)]
        two[-8:] = small
        expected = []
        for a, b in zip(one, two, strict=True):
            wanted = EXACT[operation](Fraction(a, 10**left.scale), Fraction(b, 10**right.scale))
            expected.append(None if wanted is None else _stored(wanted, result))
        if operation in ("mod", "pmod"):  # a quotient of 40 digits is an error in `try_`, too
            shift = 10 ** max(right.scale - left.scale, 0)
            kept = [i for i, b in enumerate(two) if not b or abs(one[i]) * shift // abs(b) < 10**38]
            one, two, expected = ([x[i] for i in kept] for x in (one, two, expected))
        function = DecimalFunction(f"try_{operation}", (left, right), result)
        found = compute(function, (_column(one, left), _column(two, right)))
        assert found.type == to_arrow(result)
        assert _unscaled(found, result.scale) == expected, function.name


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_nulls_stay_null(operation: str) -> None:
    for dtype in (decimal(9, 2), decimal(38, 18)):
        result = RESULT_TYPES[operation]((Literal(dtype, None), Literal(dtype, None)))
        function = DecimalFunction(operation, (dtype, dtype), result)
        columns = (_column([None, 5, None, 8], dtype), _column([3, None, None, 4], dtype))
        found = compute(function, columns)
        assert [v is None for v in found.to_pylist()] == [True, True, True, False]
        sliced = compute(function, tuple(c.slice(2) for c in columns))
        assert sliced.to_pylist() == found.to_pylist()[2:]


@pytest.mark.parametrize(
    ("operation", "left", "right", "message"),
    [
        ("add", 10**38 - 1, 10**38 - 1, "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("multiply", 10**38 - 1, 10**38 - 1, "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("divide", 10**38 - 1, 1, "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("divide", 1, 0, "DIVIDE_BY_ZERO"),
        ("div", 1, 0, "DIVIDE_BY_ZERO"),
        ("mod", 1, 0, "REMAINDER_BY_ZERO"),
        ("pmod", 0, 0, "REMAINDER_BY_ZERO"),
    ],
)
def test_what_spark_refuses_is_an_error_or_null(
    operation: str, left: int, right: int, message: str
) -> None:
    dtype = decimal(38, 6)
    result = RESULT_TYPES[operation]((Literal(dtype, None), Literal(dtype, None)))
    columns = (_column([left], dtype), _column([right], dtype))
    with pytest.raises(DecimalError, match=message):
        compute(DecimalFunction(operation, (dtype, dtype), result), columns)
    found = compute(DecimalFunction(f"try_{operation}", (dtype, dtype), result), columns)
    assert found.to_pylist() == [None]


def test_an_error_beside_null_is_none() -> None:
    dtype = decimal(38, 18)
    function = DecimalFunction("divide", (dtype, dtype), decimal(38, 6))
    found = compute(function, (_column([None, 10**18], dtype), _column([0, 10**18], dtype)))
    assert found.to_pylist() == [None, Decimal(1)]


@pytest.mark.parametrize("name", sorted(ROUNDINGS))
def test_roundings_equal_pythons(name: str) -> None:
    mode = {"round": "ROUND_HALF_UP", "bround": "ROUND_HALF_EVEN", "ceil": "ROUND_CEILING", "floor": "ROUND_FLOOR"}[name]  # fmt: skip
    chosen = random.Random(name)
    for source in (*EDGES, decimal(25, 20), decimal(12, 5)):
        for scale in range(source.scale):
            precision = min(source.precision - source.scale + 1 + scale, 38)
            result = decimal(max(precision, 1), scale)
            values = unscaled_values(chosen, source.precision, 40)
            with localcontext(prec=80):
                given = [exact(v, source.scale) for v in values]
                rounded = [v.quantize(Decimal(1).scaleb(-scale), rounding=mode) for v in given]
                expected = [int(v.scaleb(scale)) for v in rounded]
            found = compute(DecimalFunction(name, (source,), result), (_column(values, source),))
            assert _unscaled(found, scale) == expected, (name, source, result)


def test_what_is_negated_has_34_digits() -> None:
    dtype = decimal(38, 4)
    values = [
        10**38 - 1,
        10**34 - 1,
        1234567890123456789012345678901234500,
        -(10**37 + 1),
        0,
    ]
    column = _column(values, dtype)
    negated = compute(DecimalFunction("try_negate", (dtype,), dtype), (column,))
    assert _unscaled(negated, 4) == [None, 1 - 10**34, -1234567890123456789012345678901234000, 10**37, 0]  # fmt: skip
    sizes = compute(DecimalFunction("abs", (dtype,), dtype), (column,))
    assert _unscaled(sizes, 4) == [*values[:3], 10**37, 0]


def test_a_query_declares_what_it_names() -> None:
    connection = duckdb.connect()
    dtype, result = decimal(38, 18), decimal(38, 6)
    function = DecimalFunction("multiply", (dtype, dtype), result)
    sql = f"SELECT {function.name}(1.5, NULL), {function.name}(1.5, -0.0000015)"
    assert decimal_functions(sql) == {function}
    functions = DecimalFunctions(connection)
    for _ in range(2):  # declaring it again, as another task does, changes nothing
        functions.declare(sql)
        cursor = connection.cursor()
        assert cursor.execute(sql).fetchall() == [(None, Decimal("-0.000002"))]
        cursor.close()
    with pytest.raises(duckdb.Error, match="NUMERIC_VALUE_OUT_OF_RANGE"):
        connection.execute(f"SELECT {function.name}(x, x) FROM (VALUES (1e19::{'DECIMAL(38,18)'})) v(x)")  # fmt: skip
    connection.close()
