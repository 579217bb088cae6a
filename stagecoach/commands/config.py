"""`stagecoach config`: the value of every setting and where it came from."""

from __future__ import annotations

import difflib
import json
import os
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from stagecoach.options import debug_option, read_settings, storage_option, text_or_json_option
from stagecoach.storage_root import DEFAULT_STORAGE, STORAGE_VARIABLE
from stagecoach.terminal import configure_logging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.settings import EffectiveSetting

_OTHER_VARIABLES = (STORAGE_VARIABLE, "STAGECOACH_CATALOG", "STAGECOACH_SETTINGS")


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
    help="As other commands take it: engine.NAME or a Spark setting spark.…; may be repeated.",
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
    """Show the value of every setting and where it came from; secrets are masked.

    What is nearer wins: --set, then STAGECOACH_NAME in the environment, then the settings file.
    """
    from infra.settings import effective_settings

    configure_logging(debug=debug)
    overrides: dict[str, Any] = dict(read_settings(assignments).engine)
    if storage:
        overrides["storage_root"] = storage
    found = effective_settings(path, overrides=overrides)
    sources = {setting.name: setting.source for setting in found}
    if storage and context.get_parameter_source("storage") is ParameterSource.ENVIRONMENT:
        sources["storage_root"] = f"variable {STORAGE_VARIABLE}"
    if output_format == "json":
        shown = [
            {"name": s.name, "value": s.shown, "source": sources[s.name], **_resolved(s)}
            for s in found
        ]
        click.echo(json.dumps({"settings": shown}, indent=2, ensure_ascii=False))
    else:
        _print_text(found, sources, verbose=verbose)
    for variable, meant in _mistaken_variables([s.name for s in found]):
        click.echo(f"warning: {variable} is no setting; do you mean {meant}?", err=True)


def _print_text(
    found: Sequence[EffectiveSetting], sources: dict[str, str], *, verbose: bool
) -> None:
    from infra.described import described_fields
    from infra.settings import EngineSettings

    described = {field.name: field for field in described_fields(EngineSettings)}
    values = {s.name: _value_text(s) for s in found}
    width = max(map(len, values))
    value_width = min(40, max(map(len, values.values())))
    for name, value in values.items():
        click.echo(f"{name:<{width}}  {value:<{value_width}}  {sources[name]}")
        if verbose:
            click.echo(f"{'':<{width}}  {described[name].meaning}")


def _value_text(setting: EffectiveSetting) -> str:
    from infra.described import bytes_text

    shown = setting.shown
    if setting.name.endswith("_bytes"):
        text = bytes_text(shown)
    elif isinstance(shown, dict):
        text = json.dumps(shown) if shown else "-"
    else:
        text = str(shown) if shown not in (None, "") else "-"
    resolved = _resolved(setting).get("resolved")
    return text if resolved is None else f"{text} ({resolved})"


def _resolved(setting: EffectiveSetting) -> dict[str, str]:
    """What a default means on this machine."""
    from infra.described import bytes_text
    from infra.settings import EngineSettings

    if setting.name == "memory_bytes" and not setting.value:
        megabytes = EngineSettings().task_memory_bytes >> 20
        return {"resolved": bytes_text(megabytes << 20)}
    if setting.name == "spill_dir" and not setting.value:
        return {"resolved": EngineSettings().spill_folder}
    if setting.name == "storage_root" and setting.value == DEFAULT_STORAGE:
        return {"resolved": os.path.abspath(DEFAULT_STORAGE)}
    return {}


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
