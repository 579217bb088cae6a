"""Numbers of bytes and rows as people read them."""

from __future__ import annotations


def format_bytes(num_bytes: int) -> str:
    """Return a size in powers of 1000, such as `1.5 MB`."""
    size, units = float(num_bytes), ["B", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{num_bytes} B" if units[0] == "B" else f"{size:.3g} {units[0]}"


def format_rows(num_rows: int, *, is_estimate: bool = False, width: int = 0) -> str:
    """Return a number of rows, such as `1 row`, `1,200 rows`, or `≈ 1,200 rows` of an estimate.

    Args:
        num_rows: The number.
        is_estimate: Whether it is not exact.
        width: Characters to which the number is padded on the left, for columns of text.
    """
    number = f"≈ {num_rows:,}" if is_estimate else f"{num_rows:,}"
    one = num_rows == 1 and not is_estimate
    return f"{number:>{width}} {'row' if one else 'rows'}{' ' if one and width else ''}"
