"""Settings: their values, where each came from, and their documentation."""

from __future__ import annotations
