"""The values that all phases share: expressions, operators, plans, stages, and their JSON."""

from __future__ import annotations
