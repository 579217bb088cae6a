"""Physical plans over many tasks: where exchanges stand, by which keys, and why."""

from __future__ import annotations

from planner.distribution.distribute import distribute as distribute
from planner.distribution.distribute import distribute_shared as distribute_shared
from planner.distribution.distribute import fits_one_task as fits_one_task
