"""Spell the steps of Spark's HyperLogLog++ in Spark SQL, for stages that Spark runs."""

from __future__ import annotations

from stagecoach.planner.hyperloglog import constants
from stagecoach.planner.hyperloglog.estimate import RANK_BITS, alpha_m2, bias_steps
from stagecoach.planner.plan.expressions import Call, Literal


def _precision(node: Call) -> int:
    literal = node.args[1]
    assert isinstance(literal, Literal), literal
    return int(literal.value or 0)


def code_of_spark(node: Call) -> str:
    """The register and the rank of a hash."""
    precision = _precision(node)
    register = f"shiftrightunsigned({{0}}, {64 - precision})"
    rest = f"(shiftleft({{0}}, {precision}) | {1 << (precision - 1)}L)"
    return f"CAST({register} * {1 << RANK_BITS} + 65 - length(bin({rest})) AS INT)"


def estimate_of_spark(node: Call) -> str:
    """What a set of codes estimates: codes are read downwards, for a register keeps its highest."""
    precision = _precision(node)
    size = 1 << precision
    starts, biases = (
        ", ".join(f"{number!r}D" for number in column) for column in bias_steps(precision)
    )
    start = f"named_struct('z', {size}.0D, 'v', {size}, 'last', -1)"
    register = f"shiftright(c, {RANK_BITS})"
    inverse = f"1.0D / CAST(shiftleft(1L, c & {(1 << RANK_BITS) - 1}) AS DOUBLE)"
    added = f"named_struct('z', a.z - 1 + {inverse}, 'v', a.v - 1, 'last', {register})"
    step = f"CASE WHEN a.last = {register} THEN a ELSE {added} END"
    raw = f"aggregate(sort_array({{0}}, false), {start}, (a, c) -> {step})"
    bias = f"element_at(array({biases}), 1 + size(filter(array({starts}), x -> x <= r.e)))"
    linear = f"{float(size)!r}D * ln({float(size)!r}D / greatest(r.v, 1))"
    both = (
        f"named_struct('linear', {linear}, 'v', r.v, 'raw', r.e, "
        f"'e', CASE WHEN r.e < {5.0 * size!r}D THEN r.e - {bias} ELSE r.e END)"
    )
    small = f"r.linear <= {constants.THRESHOLDS[precision]!r}D OR r.raw <= {2.5 * size!r}D"
    chosen = f"CASE WHEN r.v > 0 AND ({small}) THEN r.linear ELSE r.e END"
    raws = (
        f"transform(array({raw}), r -> named_struct('e', {alpha_m2(precision)!r}D / r.z, 'v', r.v))"
    )
    return (
        f"CAST(floor(transform(transform({raws}, r -> {both}), r -> {chosen})[0] + 0.5D) AS BIGINT)"
    )
