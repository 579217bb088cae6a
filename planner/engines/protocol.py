"""The planner's half of an engine: which fragments it may run, and its SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from stagecoach.planner.catalog import TableInfo
from stagecoach.planner.engines.dialect import Dialect
from stagecoach.planner.plan.physical import PhysicalPlan


@dataclass(frozen=True)
class Conditions:
    """What decides, besides the fragment, whether an engine may run it.

    Args:
        tables: What the catalog knows of the tables.
        time_zone: Session time zone, an IANA name.
        exact_math: Whether results must equal Spark's in the last bit.
    """

    tables: Mapping[str, TableInfo]
    time_zone: str = "UTC"
    exact_math: bool = True


class PlannerEngine(Protocol):
    """What planning asks of an engine."""

    @property
    def label(self) -> str:
        """What messages call it."""

    @property
    def dialect(self) -> Dialect:
        """Its SQL."""

    def refusal(self, fragment: PhysicalPlan, conditions: Conditions) -> str | None:
        """Why it must not run a fragment, in words for `explain`; None if it may.

        It may run what is proven to equal Spark, in values, types and errors. When in doubt, it
        refuses: Spark then runs the stage, which may be slow but is correct.
        """
