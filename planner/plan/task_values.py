"""Values that a fragment reads and that each task gets for itself, by the name of a variable."""

from __future__ import annotations

COMPLETE_ABOVE = "complete_above"
"""All rows with a key above this one and below the next are read by this task."""
COMPLETE_BELOW = "complete_below"
"""The upper end of that range; neither end is in it."""
