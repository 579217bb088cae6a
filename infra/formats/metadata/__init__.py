"""Metadata tables: rows about a table, such as its files, as a table of their own."""

from __future__ import annotations
