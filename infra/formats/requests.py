"""What a fragment asks of one of its scans, for the format of the table to plan.

A format takes over what it can of the filters and of the order with a limit right above the scan.
The operators stay in the fragment, so a format only ever saves reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stagecoach.infra.formats.first_rows import FirstRows, first_rows
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import ScanAbilities
from stagecoach.planner.formats.registry import planner_format
from stagecoach.planner.plan.expressions import Column, Expression, Literal
from stagecoach.planner.plan.physical import DedupScanExec, PhysicalPlan, ScanExec
from stagecoach.planner.pruning.scan_filters import conjuncts_above
from stagecoach.planner.types import Field


@dataclass(frozen=True)
class ScanRequest:
    """A scan in its fragment.

    Args:
        fragment: The stage's fragment.
        leaf: The scan, a node of the fragment.
        parameters: Values of the query's parameters.
        time_zone: Session time zone.
        takes: What the scan may take over.
        names: Names under which the columns are given; `c<id>` by default.
    """

    fragment: PhysicalPlan
    leaf: ScanExec
    parameters: Mapping[str, Literal] = field(default_factory=dict)
    time_zone: str = "UTC"
    takes: ScanAbilities = field(default_factory=ScanAbilities)
    names: tuple[str, ...] = ()

    @cached_property
    def columns(self) -> tuple[LeafColumn, ...]:
        """The columns to give: name in the fragment, name in the table, type."""
        names = self.names or tuple(f"c{c.id}" for c in self.leaf.outputs)
        triples = zip(names, self.leaf.source, self.leaf.outputs, strict=True)
        return tuple(LeafColumn(name, source, c.dtype) for name, source, c in triples)

    @cached_property
    def filters(self) -> Sequence[Expression]:
        """Conjuncts right above the scan, over its output columns."""
        return conjuncts_above(self.fragment, self.leaf) if self.takes.filters else ()

    @cached_property
    def first_rows(self) -> FirstRows | None:
        """Which first rows are wanted, if no others are and the scan can make use of it."""
        return first_rows(self.fragment, self.leaf) if self.takes.first_rows else None


def scan_request(
    fragment: PhysicalPlan,
    leaf: ScanExec,
    table_format: str,
    parameters: Mapping[str, Literal],
    time_zone: str,
) -> ScanRequest:
    """Return what a fragment asks of a scan of a table of some format; see `ScanRequest`."""
    takes = planner_format(table_format).takes
    return ScanRequest(fragment, leaf, parameters, time_zone, takes)


def whole_table(
    table: str, fields: Sequence[Field], time_zone: str, key: tuple[str, ...] = ()
) -> ScanRequest:
    """Return a request for all rows of a table, the columns under their own names.

    Args:
        table: Name of the table.
        fields: The columns.
        time_zone: Session time zone.
        key: The unique key that the scan enforces; empty for none.
    """
    columns = tuple(Column(i, f.name, f.dtype) for i, f in enumerate(fields))
    names = tuple(f.name for f in fields)
    leaf = DedupScanExec(table, columns, names, key=key) if key else ScanExec(table, columns, names)
    return ScanRequest(leaf, leaf, time_zone=time_zone, names=names)
