"""The public API: `connect` opens a session, `build_definitions` makes a Dagster code location.

Names are loaded when they are first used: Spark's executors import `stagecoach.infra`, and must
not wait for a session; sessions do not wait for Dagster.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagecoach.api.appending import append as append
    from stagecoach.api.result import Result as Result
    from stagecoach.api.session import Session as Session
    from stagecoach.api.session import connect as connect
    from stagecoach.assets.automation.alerts import Alert as Alert
    from stagecoach.assets.automation.alerts import Webhook as Webhook
    from stagecoach.assets.automation.alerts import build_alert_sensors as build_alert_sensors
    from stagecoach.assets.definitions.components import StagecoachProject as StagecoachProject
    from stagecoach.assets.definitions.location import build_definitions as build_definitions
    from stagecoach.assets.definitions.translator import StageProps as StageProps
    from stagecoach.assets.definitions.translator import StageTranslator as StageTranslator

_MODULES = {
    "Alert": "stagecoach.assets.automation.alerts",
    "Result": "stagecoach.api.result",
    "Session": "stagecoach.api.session",
    "StageProps": "stagecoach.assets.definitions.translator",
    "StageTranslator": "stagecoach.assets.definitions.translator",
    "StagecoachProject": "stagecoach.assets.definitions.components",
    "Webhook": "stagecoach.assets.automation.alerts",
    "append": "stagecoach.api.appending",
    "build_alert_sensors": "stagecoach.assets.automation.alerts",
    "build_definitions": "stagecoach.assets.definitions.location",
    "connect": "stagecoach.api.session",
}


def __getattr__(name: str) -> object:
    if (module := _MODULES.get(name)) is None:
        raise AttributeError(f"module 'stagecoach' has no attribute '{name}'")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
