"""Physical plans over many tasks: where exchanges stand, by which keys, and why."""

from __future__ import annotations

from planner.distribution.distribute import distribute as distribute
