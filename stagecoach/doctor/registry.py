"""All checks, in their order: a later one may need what an earlier one has found."""

from __future__ import annotations

from stagecoach.doctor.checks.clocks import ClockCheck
from stagecoach.doctor.checks.dagster import DagsterCheck
from stagecoach.doctor.checks.disks import DiskCheck
from stagecoach.doctor.checks.executors import ExecutorCheck
from stagecoach.doctor.checks.java import JavaCheck
from stagecoach.doctor.checks.spark import SparkCheck
from stagecoach.doctor.checks.storage import StorageCheck
from stagecoach.doctor.checks.tables import TableCheck
from stagecoach.doctor.findings import Check

CHECKS: tuple[Check, ...] = (
    JavaCheck(),
    SparkCheck(),
    ExecutorCheck(),
    StorageCheck(),
    ClockCheck(),
    DiskCheck(),
    TableCheck(),
    DagsterCheck(),
)
