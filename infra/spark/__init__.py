"""Spark sessions: one started here, or one of a Spark Connect server."""

from __future__ import annotations
