"""Spark's HyperLogLog++ over Arrow columns: codes of hashes, and what sets of codes estimate.

`stagecoach.planner.hyperloglog.estimate` says what a code is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stagecoach.planner.hyperloglog import constants
from stagecoach.planner.hyperloglog.estimate import RANK_BITS, alpha_m2, bias_steps

_RANKS = (1 << RANK_BITS) - 1
# Positions of values within the bits of a code.
_ROW_BITS = 32


def codes(hashes: pa.ChunkedArray, precisions: pa.ChunkedArray) -> pa.Array:
    """The register and the rank of each hash, as one number."""
    precision = np.uint64(precisions[0].as_py() if len(precisions) else 0)
    values = hashes.to_numpy().view(np.uint64)
    rest = (values << precision) | (np.uint64(1) << (precision - np.uint64(1)))
    # Without the bit after the first one, so that the number is not rounded up to the next power.
    _, exponents = np.frexp((rest & ~(rest >> np.uint64(1))).astype(np.float64))
    registers = (values >> (np.uint64(64) - precision)).astype(np.int32)
    return pa.array((registers << RANK_BITS) + (65 - exponents).astype(np.int32))


def estimates(sets: pa.ChunkedArray, precisions: pa.ChunkedArray) -> pa.Array:
    """The number of distinct values of each set of codes."""
    precision = precisions[0].as_py() if len(precisions) else 7
    column = sets.combine_chunks()
    size, lengths = 1 << precision, np.diff(column.offsets.to_numpy())
    rows = np.repeat(np.arange(len(column), dtype=np.int64), lengths)
    found = (rows << _ROW_BITS) | column.flatten().to_numpy()
    found.sort()
    # The highest rank of a register is the last of its codes.
    registers = found >> RANK_BITS
    last = np.ones(len(found), dtype=bool)
    last[:-1] = registers[1:] != registers[:-1]
    kept = found[last]
    rows = kept >> _ROW_BITS
    filled = np.bincount(rows, minlength=len(column))
    inverses = np.bincount(rows, np.ldexp(1.0, -(kept & _RANKS)), minlength=len(column))
    zeros = (size - filled).astype(np.float64)
    return pa.array(_counted(zeros, zeros + inverses, precision))


def _counted(
    zeros: npt.NDArray[np.float64], inverses: npt.NDArray[np.float64], precision: int
) -> npt.NDArray[np.int64]:
    """Estimates from the registers without a value and the sum of all inverse powers of two."""
    size = float(1 << precision)
    starts, biases = (np.array(column) for column in bias_steps(precision))
    raw = alpha_m2(precision) / inverses
    corrected = np.where(
        raw < 5.0 * size, raw - biases[np.searchsorted(starts, raw, side="right")], raw
    )
    # No logarithm is so near to the middle of two whole numbers that its last bits matter.
    linear = size * np.log(size / np.maximum(zeros, 1))
    small = (linear <= constants.THRESHOLDS[precision]) | (raw <= 2.5 * size)
    chosen = np.where((zeros > 0) & small, linear, corrected)
    return np.floor(chosen + 0.5).astype(np.int64)
