"""Java's inverse trigonometric and hyperbolic functions, bit for bit, over arrays of doubles.

`java.lang.Math` of Java 17 and 21 uses fdlibm for these functions (its notice is in `java_math`);
Spark derives the inverse hyperbolic ones from Java's logarithms. Arguments and results are numpy
arrays of float64.
"""

from __future__ import annotations

import numpy as np

from stagecoach.infra.engines.duckdb.java_math import (
    Doubles,
    chopped,
    exp,
    expm1,
    high_word,
    horner,
    log,
    log1p,
)

_PI = 3.14159265358979311600e00
_PI_LOW = 1.2246467991473531772e-16
_HALF_PI = 1.57079632679489655800e00
_HALF_PI_LOW = 6.12323399573676603587e-17
_QUARTER_PI = 7.85398163397448278999e-01
_LN_2 = 0.6931471805599453

_ARC = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
_ARC_DIVISOR = (
    1.0,
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)
_ATAN = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)
# The arc tangents of 0, 1/2, 1, 3/2 and infinity in two parts.
_ATAN_HIGH = np.array(
    [0.0, 4.63647609000806093515e-01, _QUARTER_PI, 9.82793723247329054082e-01, _HALF_PI]
)
_ATAN_LOW = np.array(
    [
        0.0,
        2.26987774529616870924e-17,
        3.06161699786838301793e-17,
        1.39033110312309984516e-17,
        _HALF_PI_LOW,
    ]
)


# ---------------------------------------------------------------- inverse trigonometric functions


def _arc_ratio(t: Doubles) -> Doubles:
    return (t * horner(t, _ARC)) / horner(t, _ARC_DIVISOR)


def asin(x: Doubles) -> Doubles:
    """Math.asin."""
    inside = np.abs(x) <= 1
    given = np.where(inside, x, 0.0)
    size = high_word(given) & 0x7FFF_FFFF
    small = given + given * _arc_ratio(given * given)
    small = np.where(size < 0x3E400000, given, small)
    t = (1.0 - np.abs(given)) * 0.5
    s = np.sqrt(t)
    r = _arc_ratio(t)
    near = _HALF_PI - (2.0 * (s + s * r) - _HALF_PI_LOW)
    w = chopped(s)
    # At 1 both are 0, and the other branch is taken.
    c = (t - w * w) / np.where(s == 0, 1.0, s + w)
    p = 2.0 * s * r - (_HALF_PI_LOW - 2.0 * c)
    middle = _QUARTER_PI - (p - (_QUARTER_PI - 2.0 * w))
    large = np.copysign(np.where(size >= 0x3FEF3333, near, middle), given)
    y = np.where(size < 0x3FE00000, small, large)
    y = np.where(np.abs(given) == 1, given * _HALF_PI + given * _HALF_PI_LOW, y)
    return np.where(inside, y, np.nan)


def acos(x: Doubles) -> Doubles:
    """Math.acos."""
    inside = np.abs(x) <= 1
    given = np.where(inside, x, 0.0)
    size = high_word(given) & 0x7FFF_FFFF
    small = _HALF_PI - (given - (_HALF_PI_LOW - given * _arc_ratio(given * given)))
    small = np.where(size <= 0x3C600000, _HALF_PI + _HALF_PI_LOW, small)
    z = (1.0 - np.abs(given)) * 0.5
    s = np.sqrt(z)
    r = _arc_ratio(z)
    negative = _PI - 2.0 * (s + (r * s - _HALF_PI_LOW))
    df = chopped(s)
    c = (z - df * df) / np.where(s == 0, 1.0, s + df)
    positive = 2.0 * (df + (r * s + c))
    y = np.where(size < 0x3FE00000, small, np.where(given < 0, negative, positive))
    y = np.where(given == 1, 0.0, np.where(given == -1, _PI + 2.0 * _HALF_PI_LOW, y))
    return np.where(inside, y, np.nan)


def atan(x: Doubles) -> Doubles:
    """Math.atan."""
    size = high_word(x) & 0x7FFF_FFFF
    given = np.where(np.isnan(x) | (size >= 0x44100000), 1.0, np.abs(x))
    part = (
        (size >= 0x3FDC0000).astype(np.int64)
        + (size >= 0x3FE60000)
        + (size >= 0x3FF30000)
        + (size >= 0x40038000)
    )
    reduced = np.where(part == 1, (2.0 * given - 1.0) / (2.0 + given), given)
    reduced = np.where(part == 2, (given - 1.0) / (given + 1.0), reduced)
    reduced = np.where(part == 3, (given - 1.5) / (1.0 + 1.5 * given), reduced)
    reduced = np.where(part == 4, -1.0 / given, reduced)
    z = reduced * reduced
    w = z * z
    total = z * horner(w, _ATAN[::2]) + w * horner(w, _ATAN[1::2])
    small = reduced - reduced * total
    y = _ATAN_HIGH[part] - ((reduced * total - _ATAN_LOW[part]) - reduced)
    y = np.where(part == 0, np.where(size < 0x3E200000, given, small), y)
    y = np.where(size >= 0x44100000, _HALF_PI + _HALF_PI_LOW, y)
    return np.where(np.isnan(x), x, np.copysign(y, x))


def atan2(y: Doubles, x: Doubles) -> Doubles:
    """Math.atan2 of a height y and a width x."""
    odd = np.isnan(x) | np.isnan(y) | np.isinf(x) | np.isinf(y) | (x == 0) | (y == 0)
    height, width = np.where(odd, 1.0, y), np.where(odd, 1.0, x)
    left = np.signbit(width)
    size_x, size_y = high_word(width) & 0x7FFF_FFFF, high_word(height) & 0x7FFF_FFFF
    k = (size_y - size_x) >> 20
    z = atan(np.abs(height / width))
    z = np.where(k > 60, _HALF_PI + 0.5 * _PI_LOW, np.where(left & (k < -60), 0.0, z))
    result = np.where(left, _PI - (z - _PI_LOW), z)
    result = np.copysign(result, height)
    result = np.where(width == 1.0, atan(height), result)
    # Zeros and infinities.
    wide = np.isinf(x)
    behind = np.where(np.signbit(x), _PI, 0.0)
    diagonal = np.where(np.signbit(x), 3.0 * _QUARTER_PI, _QUARTER_PI)
    edge = np.where(wide, np.where(np.isinf(y), diagonal, behind), _HALF_PI)
    edge = np.copysign(np.where(y == 0, behind, edge), y)
    result = np.where(odd, edge, result)
    return np.where(np.isnan(x) | np.isnan(y), np.nan, result)


# ---------------------------------------------------------------- hyperbolic functions

_LARGEST = 710.4758600739439
"""The largest value whose hyperbolic sine is finite."""


def sinh(x: Doubles) -> Doubles:
    """Math.sinh."""
    a = np.abs(x)
    size = high_word(a)
    h = np.copysign(0.5, x)
    t = expm1(a)
    small = np.where(size < 0x3FF00000, h * (2.0 * t - t * t / (t + 1.0)), h * (t + t / (t + 1.0)))
    y = np.where(size < 0x3E300000, x, small)
    y = np.where(size >= 0x40360000, h * exp(a), y)
    w = exp(0.5 * a)
    y = np.where(size >= 0x40862E42, (h * w) * w, y)
    y = np.where(a > _LARGEST, np.copysign(np.inf, x), y)
    return np.where(np.isnan(x), x, y)


def cosh(x: Doubles) -> Doubles:
    """Math.cosh."""
    a = np.abs(x)
    size = high_word(a)
    t = expm1(a)
    w = 1.0 + t
    small = np.where(size < 0x3C800000, w, 1.0 + (t * t) / (w + w))
    e = exp(a)
    y = np.where(size < 0x3FD62E43, small, 0.5 * e + 0.5 / e)
    y = np.where(size >= 0x40360000, 0.5 * e, y)
    w = exp(0.5 * a)
    y = np.where(size >= 0x40862E42, (0.5 * w) * w, y)
    y = np.where(a > _LARGEST, np.inf, y)
    return np.where(np.isnan(x), x, y)


def tanh(x: Doubles) -> Doubles:
    """Math.tanh."""
    a = np.minimum(np.abs(x), 22.0)
    size = high_word(a)
    t = expm1(np.where(size >= 0x3FF00000, 2.0 * a, -2.0 * a))
    y = np.where(size >= 0x3FF00000, 1.0 - 2.0 / (t + 2.0), -t / (t + 2.0))
    y = np.where(size >= 0x40360000, 1.0, y)
    y = np.where(size < 0x3C800000, a * (1.0 + a), y)
    return np.where(np.isnan(x), x, np.copysign(y, x))


def asinh(x: Doubles) -> Doubles:
    """Spark's asinh."""
    a = np.abs(x)
    ends = ~np.isfinite(x) | (a < 2.0**-28)
    given = np.where(ends, 1.0, a)
    square = given * given
    root = np.sqrt(square + 1.0)
    near = log1p(given + square / (1.0 + root))
    y = np.where(given > 2.0, log(2.0 * given + 1.0 / (root + given)), near)
    y = np.where(given > 2.0**28, log(given) + _LN_2, y)
    return np.copysign(np.where(ends, a, y), x)


def acosh(x: Doubles) -> Doubles:
    """Spark's acosh."""
    given = np.where(x > 1.0, x, 1.0)
    square = given * given
    t = given - 1.0
    near = log1p(t + np.sqrt(2.0 * t + t * t))
    y = np.where(given > 2.0, log(2.0 * given - 1.0 / (given + np.sqrt(square - 1.0))), near)
    y = np.where(given >= 2.0**28, log(given) + _LN_2, y)
    return np.where(x >= 1.0, np.where(x == 1.0, 0.0, y), np.nan)


def atanh(x: Doubles) -> Doubles:
    """Spark's atanh."""
    return 0.5 * (log1p(x) - log1p(-x))
