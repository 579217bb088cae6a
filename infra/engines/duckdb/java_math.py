"""Java's exponentials, logarithms, powers and roots, bit for bit, over arrays of doubles.

Spark computes with `java.lang.StrictMath`, from which the C library differs in the last bit. These
functions take and return numpy arrays of float64; the payload of a NaN is not kept.

The algorithms, their order of operations and their coefficients are those of fdlibm 5.3, which
defines StrictMath. They are written for whole arrays: where fdlibm branches, all branches are
computed and one is chosen; where its branch for k = 0 is the general formula without its zero
terms, there is only the formula. fdlibm carries this notice:

    Copyright (C) 2004 by Sun Microsystems, Inc. All rights reserved. Permission to use, copy,
    modify, and distribute this software is freely granted, provided that this notice is preserved.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_INV_LN2 = 1.44269504088896338700e00
_OVERFLOW = 7.09782712893383973096e02
_UNDERFLOW = -7.45133219101941108420e02
_TWO_54 = 18014398509481984.0

# Horner coefficients, lowest power first.
_EXP = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
_EXPM1 = (
    1.0,
    -3.33333333333331316428e-02,
    1.58730158725481460165e-03,
    -7.93650757867487942473e-05,
    4.00821782732936239552e-06,
    -2.01099218183624371326e-07,
)
_LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
_POW = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)


# ---------------------------------------------------------------- words of a double


def high_word(x: Doubles) -> Longs:
    """Sign, exponent and the upper 20 bits of the fraction, as a signed 32-bit number."""
    return x.view(np.int64) >> 32


def low_word(x: Doubles) -> Longs:
    """The lower 32 bits of the fraction."""
    return x.view(np.int64) & 0xFFFF_FFFF


def of_words(high: Longs, low: Longs | int = 0) -> Doubles:
    """The double of two words."""
    return ((high << 32) | low).view(np.float64)


def with_high(x: Doubles, high: Longs) -> Doubles:
    """`x` with another high word."""
    return of_words(high, low_word(x))


def chopped(x: Doubles) -> Doubles:
    """`x` with a low word of 0."""
    return (x.view(np.int64) & -0x1_0000_0000).view(np.float64)


def add_exponent(x: Doubles, k: Longs) -> Doubles:
    """`x` times 2 to the k by its bits, for results that are normal numbers."""
    return (x.view(np.int64) + (k << 52)).view(np.float64)


def horner(t: Doubles, coefficients: tuple[float, ...]) -> Doubles:
    """c0 + t * (c1 + t * (c2 + …)), rounded at each step from the inside out."""
    total = t * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total += coefficient
        total *= t
    total += coefficients[0]
    return total


def _reduced(x: Doubles) -> tuple[Longs, Doubles, Doubles]:
    """k, hi and lo with x = k ln2 + hi - lo, for values of at most 746."""
    size = high_word(x) & 0x7FFF_FFFF
    near = np.where(np.signbit(x), -1.0, 1.0)
    far = np.trunc(_INV_LN2 * x + 0.5 * near)
    t = np.where(size > 0x3FD62E42, np.where(size < 0x3FF0A2B2, near, far), 0.0)
    return t.astype(np.int64), x - t * _LN2_HIGH, t * _LN2_LOW


# ---------------------------------------------------------------- exponentials


def exp(x: Doubles) -> Doubles:
    """StrictMath.exp."""
    inside = (x <= _OVERFLOW) & (x >= _UNDERFLOW)
    given = np.where(inside, x, 0.0)
    k, hi, lo = _reduced(given)
    r = hi - lo
    t = r * r
    c = r - t * horner(t, _EXP)
    product = r * c
    y = 1.0 - ((lo - product / (2.0 - c)) - hi)
    # Both steps are exact but for results below the normal numbers, where the second rounds.
    deep = k < -1021
    y = add_exponent(y, np.where(deep, k + 1000, k))
    y = np.where(deep, y * 2.0**-1000, y)
    y = np.where(k == 0, 1.0 - (product / (c - 2.0) - r), y)
    y = np.where((high_word(given) & 0x7FFF_FFFF) < 0x3E300000, 1.0 + given, y)
    return np.where(inside, y, np.where(np.isnan(x), x, np.where(x > 0, np.inf, 0.0)))


def expm1(x: Doubles) -> Doubles:
    """StrictMath.expm1."""
    size = high_word(x) & 0x7FFF_FFFF
    inside = (x <= _OVERFLOW) & ((x > 0) | (size < 0x4043687A))
    given = np.where(inside, x, 0.0)
    k, hi, lo = _reduced(given)
    r = hi - lo
    c = (hi - r) - lo
    half = 0.5 * r
    square = r * half
    r1 = horner(square, _EXPM1)
    t = 3.0 - r1 * half
    e = square * ((r1 - t) / (6.0 - r * t))
    at_0 = r - (r * e - square)
    e = (r * (e - c) - c) - square
    whole = np.clip(k, 1, 56)
    below_20 = add_exponent((1.0 - np.ldexp(1.0, -whole)) - (e - r), k)
    from_20 = add_exponent((r - (e + np.ldexp(1.0, -whole))) + 1.0, k)
    at_1 = np.where(r < -0.25, -2.0 * (e - (r + 0.5)), 1.0 + 2.0 * (r - e))
    y = np.where(k < 20, below_20, from_20)
    y = np.where((k <= -2) | (k > 56), add_exponent(1.0 - (e - r), k) - 1.0, y)
    y = np.where(k == 1, at_1, y)
    y = np.where(k == -1, 0.5 * (r - e) - 0.5, y)
    y = np.where(k == 0, at_0, y)
    y = np.where((high_word(given) & 0x7FFF_FFFF) < 0x3C900000, given, y)
    return np.where(inside, y, np.where(np.isnan(x), x, np.where(x > 0, np.inf, -1.0)))


# ---------------------------------------------------------------- logarithms


def _normalized(x: Doubles) -> tuple[Doubles, Longs]:
    """Positive finite values scaled out of the subnormal numbers, and the exponent they lack."""
    tiny = x < 2.2250738585072014e-308
    return np.where(tiny, x * _TWO_54, x), np.where(tiny, -54, 0)


def _outside_log(x: Doubles, y: Doubles, pole: float = 0.0) -> Doubles:
    """The logarithm y, but Java's answers for what has none or is infinite."""
    y = np.where(x == np.inf, np.inf, y)
    y = np.where(x == pole, -np.inf, y)
    return np.where((x < pole) | np.isnan(x), np.nan, y)


def log(x: Doubles) -> Doubles:
    """StrictMath.log."""
    inside = (x > 0) & (x < np.inf)
    given, k = _normalized(np.where(inside, x, 1.0))
    high = high_word(given)
    k += (high >> 20) - 1023
    high &= 0xFFFFF
    i = (high + 0x95F64) & 0x100000
    given = with_high(given, high | (i ^ 0x3FF00000))
    dk = (k + (i >> 20)).astype(np.float64)
    f = given - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    rest = z * horner(w, _LOG[::2]) + w * horner(w, _LOG[1::2])
    half = 0.5 * f * f
    outer = dk * _LN2_HIGH - ((half - (s * (half + rest) + dk * _LN2_LOW)) - f)
    inner = dk * _LN2_HIGH - ((s * (f - rest) - dk * _LN2_LOW) - f)
    y = np.where(((high - 0x6147A) | (0x6B851 - high)) > 0, outer, inner)
    small = (0xFFFFF & (2 + high)) < 3
    if small.any():
        rest = f * f * (0.5 - 0.33333333333333333 * f)
        tiny = dk * _LN2_HIGH - ((rest - dk * _LN2_LOW) - f)
        y = np.where(small, np.where(f == 0, dk * _LN2_HIGH + dk * _LN2_LOW, tiny), y)
    return _outside_log(x, y)


def log10(x: Doubles) -> Doubles:
    """StrictMath.log10."""
    inside = (x > 0) & (x < np.inf)
    given, k = _normalized(np.where(inside, x, 1.0))
    high = high_word(given)
    k += (high >> 20) - 1023
    i = (k < 0).astype(np.int64)
    given = with_high(given, (high & 0xFFFFF) | ((0x3FF - i) << 20))
    dk = (k + i).astype(np.float64)
    z = dk * 3.69423907715893078616e-13 + 4.34294481903251816668e-01 * log(given)
    return _outside_log(x, z + dk * 3.01029995663611771306e-01)


def log1p(x: Doubles) -> Doubles:
    """StrictMath.log1p."""
    inside = (x > -1) & (x < np.inf)
    given = np.where(inside, x, 0.0)
    high = high_word(given)
    size = high & 0x7FFF_FFFF
    direct = (high < 0x3FDA827A) & ((high > 0) | (size <= 0x3FD2BEC3))
    huge = high >= 0x43400000
    u = np.where(huge, given, 1.0 + given)
    hu = high_word(u)
    k = (hu >> 20) - 1023
    c = np.where(k > 0, 1.0 - (u - given), given - (u - 1.0)) / u
    hu &= 0xFFFFF
    low = hu < 0x6A09E
    u = with_high(u, hu | np.where(low, 0x3FF00000, 0x3FE00000))
    k = np.where(direct, 0, np.where(low, k, k + 1))
    hu = np.where(direct, 1, np.where(low, hu, (0x100000 - hu) >> 2))
    c = np.where(huge | (k == 0), 0.0, c)
    f = np.where(direct, given, u - 1.0)
    dk = k.astype(np.float64)
    half = 0.5 * f * f
    c += dk * _LN2_LOW
    s = f / (2.0 + f)
    z = s * s
    y = dk * _LN2_HIGH - ((half - (s * (half + z * horner(z, _LOG)) + c)) - f)
    near = dk * _LN2_HIGH - ((half * (1.0 - 0.66666666666666666 * f) - c) - f)
    y = np.where(hu == 0, np.where(f == 0, dk * _LN2_HIGH + c, near), y)
    y = np.where(size < 0x3E200000, given - given * given * 0.5, y)
    y = np.where(size < 0x3C900000, given, y)
    return _outside_log(x, y, -1.0)


# ---------------------------------------------------------------- powers and roots


def power(x: Doubles, y: Doubles) -> Doubles:
    """StrictMath.pow."""
    ordinary = np.isfinite(x) & np.isfinite(y) & (x != 0) & (np.abs(x) != 1)
    base, exponent = np.where(ordinary, np.abs(x), 1.5), np.where(ordinary, y, 1.0)
    whole = np.trunc(y) == y
    odd = whole & (np.abs(y) < 2.0**53) & (np.fmod(y, 2.0) != 0)
    negative = np.signbit(x)
    sign = np.where(negative & odd, -1.0, 1.0)
    result = sign * _positive_power(base, exponent)
    result = np.where(negative & ~whole & ordinary, np.nan, result)
    # Bases of 0, 1 and infinity, and infinite exponents.
    size = np.abs(x)
    special = np.where(y < 0, 1.0 / size, size) * sign
    special = np.where((x == -1) & ~whole, np.nan, special)
    endless = np.where((size > 1) == (y > 0), np.inf, 0.0)
    special = np.where(np.isinf(y), np.where(size == 1, np.nan, endless), special)
    result = np.where(ordinary, result, special)
    result = np.where((y == 0.5) & (x >= -np.finfo(np.float64).max), np.sqrt(x + 0.0), result)
    result = np.where(y == 2, x * x, result)
    result = np.where(y == 1, x, np.where(y == -1, 1.0 / x, result))
    result = np.where(np.isnan(x) | np.isnan(y), np.nan, result)
    return np.where(y == 0, 1.0, result)


def _positive_power(x: Doubles, y: Doubles) -> Doubles:
    """The power of finite x above 0 other than 1 to a finite y."""
    t1, t2 = _log2_in_two(x)
    size_x, size_y = high_word(x), high_word(y) & 0x7FFF_FFFF
    steep = size_y > 0x41E00000
    if steep.any():
        near1, near2 = _log2_near_one(x)
        t1, t2 = np.where(steep, near1, t1), np.where(steep, near2, t2)
    y1 = chopped(y)
    p_low = (y - y1) * t1 + y * t2
    p_high = y1 * t1
    z = p_low + p_high
    over = (z > 1024) | ((z == 1024) & (p_low + 8.0085662595372944372e-17 > z - p_high))
    under = (z < -1075) | ((z == -1075) & (p_low <= z - p_high))
    far = steep & ((size_x < 0x3FEFFFFF) | (size_x > 0x3FF00000))
    up = (x > 1) == (y > 0)
    over, under = np.where(far, up, over), np.where(far, ~up, under)
    calm = ~(over | under)
    result = _exp2_of_two(np.where(calm, p_high, 0.0), np.where(calm, p_low, 0.0))
    return np.where(over, np.inf, np.where(under, 0.0, result))


def _log2_in_two(x: Doubles) -> tuple[Doubles, Doubles]:
    """The logarithm to base 2 as a sum of a chopped double and a rest."""
    tiny = x < 2.2250738585072014e-308
    x = np.where(tiny, x * 9007199254740992.0, x)
    high = high_word(x)
    n = (high >> 20) - 1023 - np.where(tiny, 53, 0)
    j = high & 0xFFFFF
    k = ((j > 0x3988E) & (j < 0xBB67A)).astype(np.int64)
    wrap = j >= 0xBB67A
    n += wrap
    high = (j | 0x3FF00000) - np.where(wrap, 0x100000, 0)
    x = with_high(x, high)
    middle = 1.0 + 0.5 * k
    u = x - middle
    v = 1.0 / (x + middle)
    s = u * v
    s_h = chopped(s)
    t_h = of_words(((high >> 1) | 0x20000000) + 0x80000 + (k << 18))
    t_l = x - (t_h - middle)
    s_l = v * ((u - s_h * t_h) - s_h * t_l)
    s2 = s * s
    r = s2 * s2 * horner(s2, _POW)
    r += s_l * (s_h + s)
    s2 = s_h * s_h
    t_h = chopped(3.0 + s2 + r)
    t_l = r - ((t_h - 3.0) - s2)
    u = s_h * t_h
    v = s_l * t_h + t_l * s
    p_h = chopped(u + v)
    p_l = v - (p_h - u)
    z_h = 9.61796700954437255859e-01 * p_h
    z_l = -7.02846165095275826516e-09 * p_h + p_l * 9.61796693925975554329e-01
    z_l += np.where(k == 1, 1.35003920212974897128e-08, 0.0)
    d_h = np.where(k == 1, 5.84962487220764160156e-01, 0.0)
    t = n.astype(np.float64)
    t1 = chopped(((z_h + z_l) + d_h) + t)
    return t1, z_l - (((t1 - t) - d_h) - z_h)


def _log2_near_one(x: Doubles) -> tuple[Doubles, Doubles]:
    """The same for bases so close to 1 that a few terms of the series do."""
    t = x - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = 1.44269502162933349609e00 * t
    v = t * 1.92596299112661746887e-08 - w * _INV_LN2
    t1 = chopped(u + v)
    return t1, v - (t1 - u)


def _exp2_of_two(p_high: Doubles, p_low: Doubles) -> Doubles:
    """2 to the sum of two doubles, from -1075 to 1024."""
    high = high_word(p_low + p_high)
    size = high & 0x7FFF_FFFF
    large = size > 0x3FE00000
    k = np.where(large, (size >> 20) - 1023, 0)
    n = high + (0x100000 >> (k + 1))
    k = np.where(large, ((n & 0x7FFF_FFFF) >> 20) - 1023, 0)
    t = of_words(n & ~(0xFFFFF >> k))
    n = ((n & 0xFFFFF) | 0x100000) >> (20 - k)
    n = np.where(large, np.where(high < 0, -n, n), 0)
    p_high = np.where(large, p_high - t, p_high)
    t = chopped(p_low + p_high)
    u = t * 6.93147182464599609375e-01
    v = (p_low - (t - p_high)) * 6.93147180559945286227e-01 + t * -1.90465429995776804525e-09
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * horner(t, _EXP)
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    z = 1.0 - (r - z)
    deep = ((high_word(z) + (n << 20)) >> 20) <= 0
    y = add_exponent(z, n)
    return np.where(deep, np.ldexp(z, n), y) if deep.any() else y


def cbrt(x: Doubles) -> Doubles:
    """StrictMath.cbrt."""
    inside = np.isfinite(x) & (x != 0)
    size = np.where(inside, np.abs(x), 1.0)
    tiny = size < 2.2250738585072014e-308
    scaled = size * np.where(tiny, _TWO_54, 1.0)
    third = high_word(scaled) // 3 + np.where(tiny, 696219795, 715094163)
    t = of_words(third, np.where(tiny, low_word(scaled), 0))
    s = 5.42857142857142815906e-01 + (t * t / size) * t
    t = t * (
        3.57142857142857150787e-01
        + 1.60714285714285720630e00
        / (s + 1.41428571428571436819e00 + -7.05306122448979611050e-01 / s)
    )
    t = of_words(high_word(t) + 1)
    r = size / (t * t)
    r = (r - t) / ((t + t) + r)
    return np.where(inside, np.copysign(t + t * r, x), x)


def hypot(x: Doubles, y: Doubles) -> Doubles:
    """StrictMath.hypot."""
    finite = np.isfinite(x) & np.isfinite(y)
    a = np.where(finite, np.maximum(np.abs(x), np.abs(y)), 1.0)
    b = np.where(finite, np.minimum(np.abs(x), np.abs(y)), 1.0)
    total = a + b
    alone = (high_word(a) - high_word(b)) > 0x3C00000
    stale_a, stale_b = high_word(a), high_word(b)
    power_of_2 = np.where(stale_a > 0x5F300000, -600, np.where(stale_b < 0x20B00000, 600, 0))
    deep = b < 2.2250738585072014e-308
    power_of_2 = np.where(deep, 1022, power_of_2)
    a, b = np.ldexp(a, power_of_2), np.ldexp(b, power_of_2)
    # As in fdlibm, the words of subnormal numbers are those from before they were scaled.
    high_a = np.where(deep, stale_a, high_word(a))
    high_b = np.where(deep, stale_b, high_word(b))
    w = a - b
    t1 = of_words(high_a)
    t2 = a - t1
    steep = t1 * t1 - (b * (-b) - t2 * (a + t1))
    a2 = a + a
    y1 = of_words(high_b)
    y2 = b - y1
    t1 = of_words(high_a + 0x100000)
    t2 = a2 - t1
    level = t1 * y1 - (w * (-w) - (t1 * y2 + t2 * b))
    root = np.ldexp(np.sqrt(np.where(w > b, steep, level)), -power_of_2)
    result = np.where(alone, total, np.where(b == 0, np.maximum(np.abs(x), np.abs(y)), root))
    other = np.where(np.isinf(x) | np.isinf(y), np.inf, np.nan)
    return np.where(finite, result, other)
