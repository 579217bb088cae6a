"""Dagster definitions and runs of SQL queries: one asset, one step, one Spark job per stage.

`definitions` builds a code location from a folder of queries: `project` (names, front matter) →
`translator` and `specs` (pure) → `factory` (assets, jobs). `run` runs one query in this process.
Both go through `executor` (threads) and call `engine` for each stage.
"""

if __name__ != "stagecoach.assets":
    # The folder is linked into stagecoach/: under two names its classes would exist twice.
    raise ImportError("import stagecoach.assets: 'assets' is its folder in the repository")

from stagecoach.assets.automation.garbage_collection import GarbageCollection as GarbageCollection
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
from stagecoach.assets.in_process.run import RunOutcome as RunOutcome
from stagecoach.assets.in_process.run import run_graph as run_graph
from stagecoach.assets.project.default_storage import default_storage as default_storage
from stagecoach.assets.project.queries import Project as Project
from stagecoach.assets.project.queries import ProjectError as ProjectError
from stagecoach.assets.project.queries import Query as Query
from stagecoach.assets.project.queries import load_project as load_project
from stagecoach.assets.report.metadata import StageMetadata as StageMetadata
