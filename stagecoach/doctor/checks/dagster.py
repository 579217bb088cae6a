"""Looks at Dagster's instance, where the UI and scheduled runs keep their state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from stagecoach.doctor.findings import Finding, error, ok, skipped
from stagecoach.doctor.place import Place
from stagecoach.infra.storage.secrets import redact


class DagsterCheck:
    """The instance in DAGSTER_HOME, with its databases."""

    name = "dagster"

    def run(self, place: Place) -> Iterator[Finding]:
        """Yield whether the instance can be used."""
        del place
        home = os.environ.get("DAGSTER_HOME")
        if not home:
            yield skipped(
                "DAGSTER_HOME is not set: `stagecoach ui` keeps its state in .stagecoach/dagster"
            )
            return
        path = Path(home)
        if not path.is_absolute() or not path.is_dir():
            yield error(
                f"DAGSTER_HOME={home} is not the absolute path of a folder",
                "make the folder, or set DAGSTER_HOME to one",
            )
            return
        if not os.access(path, os.W_OK):
            yield error(f"DAGSTER_HOME={home} cannot be written", "make it writable for this user")
            return
        from dagster import DagsterInstance

        try:
            with DagsterInstance.get() as instance:
                instance.get_run_records(limit=1)
                instance.event_log_storage.get_maximum_record_id()
                storage = type(instance.run_storage).__name__
        except Exception as problem:  # noqa: BLE001 -- of any database and any mistake in the file
            lines = [line.strip() for line in redact(str(problem)).splitlines() if line.strip()]
            text = f"{type(problem).__name__}: {lines[0] if lines else 'it says nothing more'}"
            yield error(
                f"Dagster's instance in {home} cannot be used: {text}",
                f"correct {path / 'dagster.yaml'}, start its database, or run "
                "`dagster instance migrate`",
            )
            return
        yield ok(f"Dagster's instance in {home} ({storage})")
