"""Writes into tables: results that a query publishes, and rows that a user appends."""

from __future__ import annotations
