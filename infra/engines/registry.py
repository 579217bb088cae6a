"""Task engines by name, each imported when a task first needs it.

Worker code.
"""

from __future__ import annotations

import functools
import importlib

from stagecoach.infra.engines.protocol import TaskEngine
from stagecoach.infra.errors import ConfigError

DEFAULT_ENGINE = "duckdb"

_ENGINES = {DEFAULT_ENGINE: "stagecoach.infra.engines.duckdb.engine:DuckDbEngine"}


def register_engine(name: str, place: str) -> None:
    """Add an engine.

    Args:
        name: What `TaskSpec.engine` calls it.
        place: `module:Class`, importable on executors; the class takes no arguments.
    """
    _ENGINES[name] = place
    task_engine.cache_clear()


@functools.cache
def task_engine(name: str) -> TaskEngine:
    """The engine of that name.

    Raises:
        ConfigError: There is no such engine.
    """
    if (place := _ENGINES.get(name)) is None:
        raise ConfigError(f"'{name}' is not a task engine; engines: {', '.join(sorted(_ENGINES))}")
    module, _, attribute = place.partition(":")
    engine: TaskEngine = getattr(importlib.import_module(module), attribute)()
    return engine
