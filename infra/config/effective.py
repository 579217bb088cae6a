"""Effective settings and their sources."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stagecoach.infra.config.described import bytes_text
from stagecoach.infra.config.settings import Configuration, EngineSettings, setting_names
from stagecoach.infra.storage.masking import masked
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.options import PREFIX

_AWS_VARIABLES = {
    "endpoint_url": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "region": ("AWS_DEFAULT_REGION",),
    "profile": ("AWS_DEFAULT_PROFILE", "AWS_PROFILE"),
}
"""Storage options that AWS's variables set and that are not secrets, as botocore reads them."""

_IGNORED_ENDPOINTS = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"


@dataclass(frozen=True, kw_only=True)
class EffectiveSetting:
    """A setting as a process has it.

    Args:
        name: Its name; `planner.…` of an option of the planner, `storage_options.…` of one of
            storage that AWS's own variables give.
        value: Its value.
        source: Where it came from: `default`, the file, the variable, or `argument`.
    """

    name: str
    value: Any
    source: str

    @property
    def shown(self) -> Any:
        """The value as plain data that may be shown: secrets are masked."""
        return masked(self.value)

    @property
    def resolved(self) -> str | None:
        """What a default means on this machine; None where it means what it says."""
        if self.name == "memory_bytes" and not self.value:
            return bytes_text(EngineSettings().task_memory_bytes >> 20 << 20)
        if self.name == "spill_dir" and not self.value:
            return EngineSettings().spill_folder
        if self.name == "storage_root" and self.value == EngineSettings().storage_root:
            return os.path.abspath(self.value)
        return None

    @property
    def text(self) -> str:
        """The value for people."""
        shown = self.shown
        if self.name.endswith("_bytes") and isinstance(shown, int):
            text = bytes_text(shown)
        elif isinstance(shown, dict):
            text = json.dumps(shown) if shown else "-"
        else:
            text = "-" if shown in (None, "") else str(shown)
        return text if self.resolved is None else f"{text} ({self.resolved})"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        found = {"name": self.name, "value": self.shown, "source": self.source}
        return found if self.resolved is None else {**found, "resolved": self.resolved}


def effective_settings(
    found: Configuration, environment: Mapping[str, str] | None = None
) -> tuple[EffectiveSetting, ...]:
    """Every setting of a run and where it came from, in the model's order.

    Args:
        found: What is set.
        environment: Where AWS's variables are looked for; this process's own by default.
    """
    variables = os.environ if environment is None else environment
    settings: list[EffectiveSetting] = []
    for name in setting_names():
        source = found.sources.get(name, "default")
        settings.append(
            EffectiveSetting(name=name, value=getattr(found.engine, name), source=source)
        )
        if name == "storage_options":
            settings += _from_aws(found.engine.storage_options, variables)
    return tuple(settings)


def effective_options(found: Configuration) -> tuple[EffectiveSetting, ...]:
    """Every option of the planner and where it came from, in the model's order."""
    return tuple(
        EffectiveSetting(
            name=f"{PREFIX}{name}",
            value=value,
            source=found.sources.get(f"{PREFIX}{name}", "default"),
        )
        for name, value in vars(found.planner).items()
    )


def _from_aws(
    options: StorageOptions, environment: Mapping[str, str]
) -> Iterator[EffectiveSetting]:
    """The storage options that are left to AWS's variables, where these say something."""
    for name, variables in _AWS_VARIABLES.items():
        ignored = environment.get(_IGNORED_ENDPOINTS, "").lower() == "true"
        if getattr(options, name) is not None or (name == "endpoint_url" and ignored):
            continue
        for variable in variables:
            if value := environment.get(variable):
                yield EffectiveSetting(
                    name=f"storage_options.{name}", value=value, source=f"variable {variable}"
                )
                break
