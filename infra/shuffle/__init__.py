"""Shuffle files: partitioner, map file writer, manifest (the commit) and reader. Worker code."""

from __future__ import annotations
