"""`stagecoach config`: the value of every setting and planner option, and where it came from."""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from stagecoach.options import debug_option, read_settings, storage_option, text_or_json_option
from stagecoach.storage_root import DEFAULT_STORAGE, with_storage
from stagecoach.terminal import configure_logging

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from infra.effective_settings import EffectiveSetting

_OTHER_VARIABLES = (
    "STAGECOACH_CATALOG",
    "STAGECOACH_SETTINGS",
    "STAGECOACH_UI_ALLOW_HOST",
    "STAGECOACH_UI_ALLOW_ORIGIN",
    "STAGECOACH_UI_TOKEN",
)


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

        if self.name.endswith("_bytes") and isinstance(self.value, int):
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
def config(
    storage: str | None,
    path: str | None,
    assignments: tuple[str, ...],
    verbose: bool,
    output_format: str,
    debug: bool,
) -> None:
    """Show the value of every setting and planner option, and where it came from.

    What is nearer wins: --set, then STAGECOACH_NAME (of an option STAGECOACH_PLANNER__NAME) in the
    environment, then the settings file. Secrets are masked.
    """
    from infra.effective_settings import effective_options, effective_settings
    from infra.settings import load_configuration, setting_names

    configure_logging(debug=debug)
    given = read_settings(assignments)
    found = load_configuration(path, overrides=with_storage(given.values(), storage))
    settings = [_shown(setting) for setting in effective_settings(found)]
    options = [_shown(option) for option in effective_options(found)]
    if output_format == "json":
        shown = {"settings": settings, "options": options}
        described = {kind: [item.to_json() for item in items] for kind, items in shown.items()}
        click.echo(json.dumps(described, indent=2, ensure_ascii=False))
    else:
        _print_text([*settings, *options], verbose=verbose)
    for warning in _warnings(setting_names()):
        click.echo(f"warning: {warning}", err=True)


def _shown(setting: EffectiveSetting) -> _Shown:
    return _Shown(
        name=setting.name,
        value=setting.shown,
        source=setting.source,
        resolved=_resolved(setting),
    )


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
    from infra.storage.object_store import StorageOptions
    from planner.options import PREFIX, PlannerOptions

    models = (("", EngineSettings), ("storage_options.", StorageOptions), (PREFIX, PlannerOptions))
    return {
        f"{prefix}{field.name}": field.meaning
        for prefix, model in models
        for field in described_fields(model)
    }


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


def _warnings(names: Sequence[str]) -> Iterator[str]:
    """Variables of the environment that are not read though they look like settings."""
    from infra.settings import OLD_VARIABLES, variable_of

    for name, old in OLD_VARIABLES.items():
        if os.environ.get(old) and os.environ.get(variable_of(name)):
            yield f"{old} is not read, because {variable_of(name)} is set"
    known = {variable_of(name) for name in names}
    others = {*known, *OLD_VARIABLES.values(), *_OTHER_VARIABLES}
    for variable in sorted(set(os.environ) - others):
        if not variable.startswith("STAGECOACH_"):
            continue
        if close := difflib.get_close_matches(variable, known, n=1, cutoff=0.85):
            yield f"{variable} is no setting; do you mean {close[0]}?"
