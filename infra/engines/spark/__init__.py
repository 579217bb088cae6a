"""Spark SQL as an engine, and Spark jobs that run the tasks of other engines."""

from __future__ import annotations
