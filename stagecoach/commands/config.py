"""`stagecoach config`: the value of every setting and planner option, and where it came from."""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from stagecoach.options import debug_option, read_settings, storage_option, text_or_json_option
from stagecoach.storage_root import DEFAULT_STORAGE, STORAGE_VARIABLE
from stagecoach.terminal import configure_logging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.settings import EffectiveSetting

_OTHER_VARIABLES = (STORAGE_VARIABLE, "STAGECOACH_CATALOG", "STAGECOACH_SETTINGS")
_PLANNER = "planner."


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """A setting or a planner option.

    Args:
        name: Its name; of an option as `--set` takes it.
        value: Its value as plain data, without secrets.
        source: Where it came from.
        resolved: What a default means on this machine; None where it means what it says.
    """

    name: str
    value: Any
    source: str
    resolved: str | None = None

    @property
    def text(self) -> str:
        """The value for people."""
        from infra.described import bytes_text

        if self.name.endswith("_bytes"):
            text = bytes_text(self.value)
        elif isinstance(self.value, dict):
            text = json.dumps(self.value) if self.value else "-"
        else:
            text = "-" if self.value in (None, "") else str(self.value)
        return text if self.resolved is None else f"{text} ({self.resolved})"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        found = {"name": self.name, "value": self.value, "source": self.source}
        return found if self.resolved is None else {**found, "resolved": self.resolved}


@click.command()
@storage_option
@click.option(
    "--settings",
    "path",
    metavar="FILE.yaml",
    help="The settings file.  [default: $STAGECOACH_SETTINGS]",
)
@click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="As other commands take it: planner.NAME, engine.NAME or a Spark setting spark.…; "
    "may be repeated.",
)
@click.option("--verbose", "-v", is_flag=True, help="Say what each setting means, too.")
@text_or_json_option
@debug_option
@click.pass_context
def config(
    context: click.Context,
    storage: str | None,
    path: str | None,
    assignments: tuple[str, ...],
    verbose: bool,
    output_format: str,
    debug: bool,
) -> None:
    """Show the value of every setting and planner option, and where it came from.

    What is nearer wins: --set, then (of settings) STAGECOACH_NAME in the environment, then the
    settings file. Secrets are masked.
    """
    from infra.settings import effective_settings

    configure_logging(debug=debug)
    given = read_settings(assignments)
    overrides: dict[str, Any] = dict(given.engine)
    if storage:
        overrides["storage_root"] = storage
    found = effective_settings(path, overrides=overrides)
    sources = {setting.name: setting.source for setting in found}
    if storage and context.get_parameter_source("storage") is ParameterSource.ENVIRONMENT:
        sources["storage_root"] = f"variable {STORAGE_VARIABLE}"
    settings = [
        _Shown(name=s.name, value=s.shown, source=sources[s.name], resolved=_resolved(s))
        for s in found
    ]
    options = _options(given.planner, {s.name: s for s in found}["time_zone"])
    if output_format == "json":
        shown = {"settings": settings, "options": options}
        described = {kind: [item.to_json() for item in items] for kind, items in shown.items()}
        click.echo(json.dumps(described, indent=2, ensure_ascii=False))
    else:
        _print_text([*settings, *options], verbose=verbose)
    for variable, meant in _mistaken_variables([s.name for s in found]):
        click.echo(f"warning: {variable} is no setting; do you mean {meant}?", err=True)


def _options(given: Mapping[str, object], time_zone: EffectiveSetting) -> list[_Shown]:
    """The planner options of a session that is given some of them.

    Raises:
        OptionError: For an unknown option or a value that does not fit.
    """
    from planner.options import PlannerOptions

    texts = {name: str(value) for name, value in given.items()}
    # As `connect` does: unless it is given, the zone is that of the settings.
    options = PlannerOptions().updated({"time_zone": time_zone.value, **texts})
    sources = {"time_zone": time_zone.source, **dict.fromkeys(texts, "argument")}
    return [
        _Shown(name=f"{_PLANNER}{name}", value=value, source=sources.get(name, "default"))
        for name, value in vars(options).items()
    ]


def _print_text(shown: Sequence[_Shown], *, verbose: bool) -> None:
    meanings = _meanings()
    width = max(len(item.name) for item in shown)
    value_width = min(40, max(len(item.text) for item in shown))
    for item in shown:
        click.echo(f"{item.name:<{width}}  {item.text:<{value_width}}  {item.source}")
        if verbose:
            click.echo(f"{'':<{width}}  {meanings[item.name]}")


def _meanings() -> dict[str, str]:
    from infra.described import described_fields
    from infra.settings import EngineSettings
    from planner.options import PlannerOptions

    settings = {field.name: field.meaning for field in described_fields(EngineSettings)}
    options = described_fields(PlannerOptions)
    return settings | {f"{_PLANNER}{field.name}": field.meaning for field in options}


def _resolved(setting: EffectiveSetting) -> str | None:
    """What a default means on this machine."""
    from infra.described import bytes_text
    from infra.settings import EngineSettings

    if setting.name == "memory_bytes" and not setting.value:
        megabytes = EngineSettings().task_memory_bytes >> 20
        return bytes_text(megabytes << 20)
    if setting.name == "spill_dir" and not setting.value:
        return EngineSettings().spill_folder
    if setting.name == "storage_root" and setting.value == DEFAULT_STORAGE:
        return os.path.abspath(DEFAULT_STORAGE)
    return None


def _mistaken_variables(names: Sequence[str]) -> list[tuple[str, str]]:
    """Variables of the environment that look like a setting and are none, with what is meant."""
    known = {f"STAGECOACH_{name.upper()}" for name in names}
    found = []
    for variable in sorted(os.environ):
        if not variable.startswith("STAGECOACH_") or variable in {*known, *_OTHER_VARIABLES}:
            continue
        if close := difflib.get_close_matches(variable, known, n=1, cutoff=0.85):
            found.append((variable, close[0]))
    return found
