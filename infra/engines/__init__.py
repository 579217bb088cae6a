"""Engines, each a folder: they run a fragment and give its rows as record batches."""

from __future__ import annotations
