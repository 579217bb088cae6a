"""Looks whether the tables of the catalog can be listed and read, here and on executors."""

from __future__ import annotations

from collections.abc import Iterator

from stagecoach.doctor.findings import Finding, error, ok, skipped
from stagecoach.doctor.place import Place
from stagecoach.planner.errors import StagecoachError

_ADVICE = "correct the location in the catalog, or allow this user to list and read it"
_EXECUTOR_ADVICE = (
    "tables must be readable under the same name on every machine: use an object store or a "
    "shared mount, and see the check of storage for credentials"
)


class TableCheck:
    """Tables: listing and one file of each."""

    name = "tables"

    def run(self, place: Place) -> Iterator[Finding]:
        """Yield which tables cannot be read."""
        if not place.catalog_file.exists():
            yield skipped(f"there is no catalog {place.catalog_file}")
            return
        try:
            names = place.catalog.table_names()
        except StagecoachError as problem:
            yield error(str(problem), f"correct {place.catalog_file}")
            return
        good = 0
        for name in names:
            try:
                place.catalog.table(name)
            except StagecoachError as problem:
                yield error(f"table '{name}': {problem}", _ADVICE)
            else:
                good += 1
        failed = {
            (name, machine.host): said
            for machine in place.machines
            for name, said in machine.tables.items()
        }
        for (name, host), said in sorted(failed.items()):
            text = f"table '{name}' cannot be read on an executor on {host}: {said}"
            yield error(text, _EXECUTOR_ADVICE)
        if good and not failed:
            yield ok(f"{good} of {len(names)} tables can be read")
