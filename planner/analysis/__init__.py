"""Check a parsed query against the catalog and build its logical plan."""

from __future__ import annotations
