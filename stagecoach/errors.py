"""The public exceptions of Stagecoach, all of them subclasses of `StagecoachError`.

from stagecoach.errors import AnalysisError, StagecoachError
"""

from __future__ import annotations

from stagecoach.api.errors import QueryCancelledError as QueryCancelledError
from stagecoach.api.errors import ResultChangedError as ResultChangedError
from stagecoach.api.errors import SessionClosedError as SessionClosedError
from stagecoach.assets.project.front_matter import FrontMatterError as FrontMatterError
from stagecoach.assets.project.queries import ProjectError as ProjectError
from stagecoach.infra.errors import ConfigError as ConfigError
from stagecoach.infra.errors import CredentialsError as CredentialsError
from stagecoach.infra.errors import ExecutorError as ExecutorError
from stagecoach.infra.errors import FunctionError as FunctionError
from stagecoach.infra.errors import InputLostError as InputLostError
from stagecoach.infra.errors import QueryFailedError as QueryFailedError
from stagecoach.infra.errors import ShuffleReadError as ShuffleReadError
from stagecoach.infra.errors import SparkUnavailableError as SparkUnavailableError
from stagecoach.infra.errors import StorageError as StorageError
from stagecoach.infra.errors import StorageRefusedError as StorageRefusedError
from stagecoach.infra.errors import TaskFailedError as TaskFailedError
from stagecoach.infra.formats.deduplicated.errors import AppendError as AppendError
from stagecoach.infra.formats.publishing import PublishError as PublishError
from stagecoach.infra.formats.version_json import TableVersionError as TableVersionError
from stagecoach.infra.integrity.errors import DamagedFileError as DamagedFileError
from stagecoach.planner.errors import AnalysisError as AnalysisError
from stagecoach.planner.errors import CatalogError as CatalogError
from stagecoach.planner.errors import ForbiddenSqlError as ForbiddenSqlError
from stagecoach.planner.errors import FunctionCallError as FunctionCallError
from stagecoach.planner.errors import GraphFormatError as GraphFormatError
from stagecoach.planner.errors import InternalPlanError as InternalPlanError
from stagecoach.planner.errors import InvalidHintError as InvalidHintError
from stagecoach.planner.errors import OptionError as OptionError
from stagecoach.planner.errors import ParameterError as ParameterError
from stagecoach.planner.errors import ParseError as ParseError
from stagecoach.planner.errors import PlacedError as PlacedError
from stagecoach.planner.errors import PlanningTimeoutError as PlanningTimeoutError
from stagecoach.planner.errors import SqlError as SqlError
from stagecoach.planner.errors import StagecoachError as StagecoachError
from stagecoach.planner.errors import UnknownColumnError as UnknownColumnError
from stagecoach.planner.errors import UnknownFunctionError as UnknownFunctionError
from stagecoach.planner.errors import UnknownTableError as UnknownTableError
from stagecoach.planner.errors import UnsupportedSqlError as UnsupportedSqlError
