"""Engines that run a fragment: in, SQL and its inputs; out, record batches of pinned types."""

from __future__ import annotations
