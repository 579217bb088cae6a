"""The front door: the command line and the few names that are public API."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from stagecoach import import_check as import_check  # first: it tells whose packages follow
from stagecoach.result import Result as Result
from stagecoach.session import Session as Session
from stagecoach.session import connect as connect

if TYPE_CHECKING:
    from assets.alerts import Alert as Alert
    from assets.alerts import Webhook as Webhook
    from assets.alerts import build_alert_sensors as build_alert_sensors
    from assets.components import StagecoachProject as StagecoachProject
    from assets.definitions import build_definitions as build_definitions
    from assets.translator import StageProps as StageProps
    from assets.translator import StageTranslator as StageTranslator
    from stagecoach.appending import append as append


# Dagster takes seconds to import, and sessions start without it.
_LAZY = {
    "Alert": "assets.alerts",
    "Webhook": "assets.alerts",
    "build_alert_sensors": "assets.alerts",
    "StageProps": "assets.translator",
    "StageTranslator": "assets.translator",
    "StagecoachProject": "assets.components",
    "append": "stagecoach.appending",
    "build_definitions": "assets.definitions",
}


def __getattr__(name: str) -> object:
    if (module := _LAZY.get(name)) is None:
        raise AttributeError(f"module 'stagecoach' has no attribute '{name}'")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
