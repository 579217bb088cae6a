"""Numbers of bytes as people read them."""

from __future__ import annotations


def format_bytes(num_bytes: int) -> str:
    """Return a size in powers of 1000, such as `1.5 MB`."""
    size, units = float(num_bytes), ["B", "kB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{num_bytes} B" if units[0] == "B" else f"{size:.3g} {units[0]}"
