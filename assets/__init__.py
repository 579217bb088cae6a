"""Stage graphs in, Dagster definitions and runs out: one asset, one step, one Spark job per stage.

`definitions` builds a code location from a folder of queries: `project` (names, front matter) →
`translator` and `specs` (pure) → `factory` (assets, jobs). `run` runs one query in this process.
Both go through `executor` (threads) and call `engine` for each stage.
"""

from assets import import_check as import_check  # first: it tells whose packages follow
from assets.components import StagecoachProject as StagecoachProject
from assets.default_storage import default_storage as default_storage
from assets.definitions import build_definitions as build_definitions
from assets.engine import RunListener as RunListener
from assets.engine import StageRequest as StageRequest
from assets.engine import StageRunner as StageRunner
from assets.executor import stagecoach_threads as stagecoach_threads
from assets.maintenance import GarbageCollection as GarbageCollection
from assets.metadata import StageMetadata as StageMetadata
from assets.project import Project as Project
from assets.project import ProjectError as ProjectError
from assets.project import Query as Query
from assets.project import load_project as load_project
from assets.resources import EngineResource as EngineResource
from assets.run import RunOutcome as RunOutcome
from assets.run import run_graph as run_graph
from assets.translator import StageProps as StageProps
from assets.translator import StageTranslator as StageTranslator
from assets.verification import StorageVerification as StorageVerification
