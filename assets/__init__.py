"""Dagster definitions and runs of SQL queries: one asset, one step, one Spark job per stage.

`definitions` builds a code location from a folder of queries: `project` (names, front matter) →
`translator` and `specs` (pure) → `factory` (assets, jobs). `run` runs one query in this process.
Both go through `executor` (threads) and call `engine` for each stage.

The public names are loaded on first use: most of them import Dagster, which the command line needs
only for a query that has something to compute.
"""

import importlib
from typing import TYPE_CHECKING

if __name__ != "stagecoach.assets":
    # The folder is linked into stagecoach/: under two names its classes would exist twice.
    raise ImportError("import stagecoach.assets: 'assets' is its folder in the repository")

if TYPE_CHECKING:
    from stagecoach.assets.automation.garbage_collection import (
        GarbageCollection as GarbageCollection,
    )
    from stagecoach.assets.automation.verification import StorageVerification as StorageVerification
    from stagecoach.assets.definitions.components import StagecoachProject as StagecoachProject
    from stagecoach.assets.definitions.location import build_definitions as build_definitions
    from stagecoach.assets.definitions.translator import StageProps as StageProps
    from stagecoach.assets.definitions.translator import StageTranslator as StageTranslator
    from stagecoach.assets.execution.engine import RunListener as RunListener
    from stagecoach.assets.execution.engine import StageRequest as StageRequest
    from stagecoach.assets.execution.engine import StageRunner as StageRunner
    from stagecoach.assets.execution.executor import stagecoach_threads as stagecoach_threads
    from stagecoach.assets.execution.resources import EngineResource as EngineResource
    from stagecoach.assets.in_process.outcome import RunOutcome as RunOutcome
    from stagecoach.assets.in_process.run import run_graph as run_graph
    from stagecoach.assets.project.default_storage import default_storage as default_storage
    from stagecoach.assets.project.queries import Project as Project
    from stagecoach.assets.project.queries import ProjectError as ProjectError
    from stagecoach.assets.project.queries import Query as Query
    from stagecoach.assets.project.queries import load_project as load_project
    from stagecoach.assets.report.metadata import StageMetadata as StageMetadata

_MODULES = {
    "GarbageCollection": "stagecoach.assets.automation.garbage_collection",
    "StorageVerification": "stagecoach.assets.automation.verification",
    "StagecoachProject": "stagecoach.assets.definitions.components",
    "build_definitions": "stagecoach.assets.definitions.location",
    "StageProps": "stagecoach.assets.definitions.translator",
    "StageTranslator": "stagecoach.assets.definitions.translator",
    "RunListener": "stagecoach.assets.execution.engine",
    "StageRequest": "stagecoach.assets.execution.engine",
    "StageRunner": "stagecoach.assets.execution.engine",
    "stagecoach_threads": "stagecoach.assets.execution.executor",
    "EngineResource": "stagecoach.assets.execution.resources",
    "RunOutcome": "stagecoach.assets.in_process.outcome",
    "run_graph": "stagecoach.assets.in_process.run",
    "default_storage": "stagecoach.assets.project.default_storage",
    "Project": "stagecoach.assets.project.queries",
    "ProjectError": "stagecoach.assets.project.queries",
    "Query": "stagecoach.assets.project.queries",
    "load_project": "stagecoach.assets.project.queries",
    "StageMetadata": "stagecoach.assets.report.metadata",
}


def __getattr__(name: str) -> object:
    if (module := _MODULES.get(name)) is None:
        raise AttributeError(f"module 'stagecoach.assets' has no attribute '{name}'")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
