"""Asks Spark for a query's result schema and compares it with the plan's.

Once for each plan, and for each value of a parameter that names or types may follow from; the
answer is kept under `analysis/`. Names always are Spark's. A type that differs means that the plan
is wrong for these values, so the query is handed to Spark as it stands, loudly.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from stagecoach.infra.runtime.planning.fingerprint import digest, package_version
from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.spark.row_conf import row_conf
from stagecoach.infra.storage import checked_json, layout
from stagecoach.infra.storage.object_store import ObjectMissingError
from stagecoach.infra.storage.rereads import reread
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.syntax.parse import read_query, spark_text
from stagecoach.planner.types import Field, arrow_schema, parse_result_type

log = logging.getLogger(__name__)

_CHECK_VERSION = 1
_lock = threading.Lock()
_pending: dict[tuple[str, str], Future[SchemaCheck]] = {}
_pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="schema-check")


@dataclass(frozen=True)
class SchemaCheck:
    """What Spark says about the result of a query.

    Args:
        columns: Names and types (as Spark prints them) of the result's columns.
        mismatch: In which column the plan's type differs, or None.
    """

    columns: tuple[tuple[str, str], ...]
    mismatch: str | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns.

        Raises:
            UnsupportedSqlError: A type cannot be stored.
        """
        fields = tuple(Field(name, parse_result_type(kind)) for name, kind in self.columns)
        arrow_schema(fields)  # refuses by name what no file of ours can hold
        return fields


def start_schema_check(run: Run) -> Future[SchemaCheck]:
    """Begin the check in another thread, once a process; the result is that of `check_schema`."""
    key = (run.store.uri("check"), _key(run))
    with _lock:
        found = _pending.get(key)
        if found is None or (found.done() and found.exception() is not None):
            found = _pool.submit(check_schema, run)
            _pending[key] = found
        return found


def check_schema(run: Run) -> SchemaCheck:
    """Compare the plan's result with Spark's own analysis over empty tables.

    Args:
        run: The run. Its store keeps the answer, and its session is asked if none is there yet.

    Raises:
        QueryFailedError: Spark refuses the query.
        TaskFailedError: Spark itself failed.
    """
    if (known := stored_check(run)) is not None:
        return known
    graph = run.graph
    # They import pyspark, for which a stored answer need not wait.
    from stagecoach.infra.engines.spark.engine import analyze
    from stagecoach.infra.spark.session import isolated_session

    with isolated_session(run.session(), graph.time_zone) as session:
        text = spark_text(graph.sql)
        columns = analyze(session, graph.query, text, graph.tables, run.values, graph.functions)
    # What the answer is of, for gc.
    found = {"columns": columns, "plan": graph.plan_hash, "query": graph.query}
    run.store.write_bytes(layout.analysis(_key(run)), checked_json.dump(found))
    return _compare(graph, tuple(columns))


def stored_check(run: Run) -> SchemaCheck | None:
    """Return the check by an answer that Spark has given before; None where it has given none."""
    store, address = run.store, layout.analysis(_key(run))
    damaged = (ValueError, TypeError, KeyError)
    try:
        columns = reread(store, address, lambda: parse_analysis(store.read_bytes(address)), damaged)
    except ObjectMissingError:
        return None
    except damaged as error:
        log.warning("%s is damaged (%s) and is made again", store.uri(address), error)
        return None
    return _compare(run.graph, tuple(columns))


def parse_analysis(text: bytes) -> list[tuple[str, str]]:
    """Return names and types of the columns of an analysis with this text.

    Raises:
        ValueError, TypeError, KeyError: The text is damaged.
    """
    return [(name, kind) for name, kind in checked_json.load(text)["columns"]]


def _compare(graph: StageGraph, columns: tuple[tuple[str, str], ...]) -> SchemaCheck:
    # A query that is handed to Spark has Spark's types, whatever the planner guessed.
    if graph.head.sql is not None:
        return SchemaCheck(columns)
    planned = [str(field.dtype) for field in graph.result]
    mismatch: str | None = None
    if len(planned) != len(columns):
        mismatch = f"the plan has {len(planned)} columns, Spark {len(columns)}"
    else:
        for position, (ours, (name, theirs)) in enumerate(zip(planned, columns, strict=True)):
            if ours != _normal(theirs):
                mismatch = f"column {position} '{name}' is {theirs} in Spark, {ours} in the plan"
                break
    if mismatch is not None:
        log.warning("query '%s': %s; Spark runs the whole query", graph.query, mismatch)
    return SchemaCheck(columns, mismatch)


def _normal(kind: str) -> str:
    return "string" if kind.startswith(("char(", "varchar(")) else kind


def _shaping_values(run: Run) -> dict[str, str]:
    """Values of the parameters that columns may follow from, as Python writes them."""
    if not run.values:
        return {}
    shaping = read_query(run.graph.sql).shaping_parameters
    return {name: repr(v.value) for name, v in sorted(run.values.items()) if name in shaping}


def _key(run: Run) -> str:
    graph = run.graph
    conf = row_conf(run.settings.spark_conf)
    return digest(
        {
            "check": _CHECK_VERSION,
            "plan": graph.plan_hash,
            "sql": graph.sql,
            "tables": [[n, [[f.name, str(f.dtype)] for f in fs]] for n, fs in graph.tables],
            "parameters": {name: str(v.dtype) for name, v in sorted(run.values.items())},
            **({"values": values} if (values := _shaping_values(run)) else {}),
            "spark": package_version("pyspark"),
            **({"functions": [f.to_dict() for f in graph.functions]} if graph.functions else {}),
            **({"spark_conf": conf} if conf else {}),
        }
    )
