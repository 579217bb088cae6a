"""Runs stages in the driver: plans their tasks, has them executed and commits what they write."""

from __future__ import annotations
