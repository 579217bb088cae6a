"""The Python API: sessions, their results, and how parameters are given."""

from __future__ import annotations
