"""The plans that a run went by: with its snapshot and its clock they tell all that it computed.

`runs/<root run>/plans/<plan hash>.json` holds the stage graph and the values that were given for
its parameters. `stagecoach replay` reads it. Re-executions share the folder of their root run; one
that was planned again leaves a second plan there. The pointers say which plan made which output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.serde import decode, dump_graph, load_graph
from stagecoach.planner.plan.stages import StageGraph


@dataclass(frozen=True)
class RunPlan:
    """What a run computed, but for its snapshot and its clock.

    Args:
        graph: The planned query.
        parameters: The values that were given, by name.
    """

    graph: StageGraph
    parameters: Mapping[str, Literal] = field(default_factory=dict)


def write_run_plan(store: ObjectStore, root_run_id: str, plan: RunPlan) -> None:
    """Keep the plan of a run, unless another of its processes has.

    Raises:
        StorageError: The storage refused.
    """
    key = layout.run_plan(root_run_id, plan.graph.plan_hash)
    values = {
        "graph": dump_graph(plan.graph),
        "parameters": {name: encode(value) for name, value in plan.parameters.items()},
    }
    store.put_if_absent(key, checked_json.dump(values))


def read_run_plans(store: ObjectStore, root_run_id: str) -> list[RunPlan]:
    """Return the plans of a run, in no order.

    Raises:
        ValueError, KeyError, TypeError, GraphFormatError: One is damaged, or of another version.
    """
    keys = store.list(layout.run_plans(root_run_id))
    return [parse_run_plan(store.read_bytes(key)) for key in keys if ".tmp-" not in key]


def parse_run_plan(text: bytes) -> RunPlan:
    """Return the plan with this text.

    Raises:
        ValueError, KeyError, TypeError, GraphFormatError: The text is damaged, or of another
            version.
    """
    values = checked_json.load(text)
    parameters = {name: decode(value) for name, value in values["parameters"].items()}
    return RunPlan(load_graph(values["graph"]), parameters)
