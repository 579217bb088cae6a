"""Physical plans over many tasks: where exchanges stand, by which keys, and why."""

from __future__ import annotations

from stagecoach.planner.distribution.distribute import distribute as distribute
from stagecoach.planner.distribution.distribute import distribute_shared as distribute_shared
from stagecoach.planner.distribution.distribute import fits_one_task as fits_one_task
from stagecoach.planner.distribution.distribute import fits_wide_task as fits_wide_task
