"""One stage of a run in a process of its own, as a run launcher of another machine would run it.

Arguments: the graph as JSON, the number of the stage, the run, the storage root, the catalog file.
"""

import sys
from pathlib import Path

from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.settings import load_settings
from stagecoach.infra.runtime.stages.run_stage import Run, run_stage
from stagecoach.infra.spark.session import stop_sessions
from stagecoach.planner.plan.serde import load_graph


def main() -> None:
    graph_file, stage_id, run_id, root, catalog = sys.argv[1:]
    settings = load_settings(overrides={"storage_root": root})
    graph = load_graph(Path(graph_file).read_text())
    result = run_stage(
        int(stage_id),
        Run(
            graph=graph,
            run_id=run_id,
            root_run_id=run_id,
            settings=settings,
            store=settings.open_store(),
            catalog=load_catalog(catalog),
        ),
    )
    stop_sessions()
    sys.stdout.write(result.fingerprint)


if __name__ == "__main__":
    main()
