"""SVG helpers that all drawings share."""

import html
from collections.abc import Sequence

_SMALLEST = 0.75


def svg(name: str, width: int, height: int, parts: Sequence[str], label: str) -> str:
    """A drawing.

    Args:
        name: Its CSS class.
        width: In pixels, when there is room.
        height: Likewise.
        parts: What is in it.
        label: What it shows, for those who cannot see it.
    """
    # Where there is less room it becomes smaller, and then scrolls: its text must be readable.
    return (
        f'<svg class="{name}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'style="min-width:{round(width * _SMALLEST)}px" '
        f'role="img" aria-label="{html.escape(label)}">{"".join(parts)}</svg>'
    )


def as_title(text: str) -> str:
    """What is shown when the pointer rests on an element."""
    return f"<title>{as_text(text.strip())}</title>"


def as_text(text: str) -> str:
    """Text without a meaning as markup."""
    return html.escape(text, quote=False)


def shortened(text: str, width: int = 40) -> str:
    """The text in at most so many characters."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
