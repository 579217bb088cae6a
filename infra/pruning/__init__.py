"""Decides by bounds and keys which files and row groups no row of a result can come from."""

from __future__ import annotations
