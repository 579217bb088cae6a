"""`stagecoach config`: shows effective settings and their source."""

from __future__ import annotations

import difflib
import json
import os
from typing import TYPE_CHECKING

import click

from stagecoach.api.storage_root import with_storage
from stagecoach.arguments.options import (
    debug_option,
    read_settings,
    storage_option,
    text_or_json_option,
)
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stagecoach.infra.config.effective import EffectiveSetting

_OTHER_VARIABLES = (
    "STAGECOACH_CATALOG",
    "STAGECOACH_SETTINGS",
    "STAGECOACH_UI_ALLOW_HOST",
    "STAGECOACH_UI_ALLOW_ORIGIN",
    "STAGECOACH_UI_TOKEN",
)


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
    help="Set an option: planner.NAME, engine.NAME or a Spark setting spark.…; may be repeated.",
)
@click.option("--verbose", "-v", is_flag=True, help="Also explain each setting.")
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
    """Show effective settings and planner options with their source.

    --set takes precedence over the environment (STAGECOACH_NAME, or STAGECOACH_PLANNER__NAME for an
    option), which takes precedence over the settings file. Secrets are masked.
    """
    from stagecoach.infra.config.effective import effective_options, effective_settings
    from stagecoach.infra.config.settings import load_configuration, setting_names

    configure_logging(debug=debug)
    given = read_settings(assignments)
    found = load_configuration(path, overrides=with_storage(given.values(), storage))
    settings, options = effective_settings(found), effective_options(found)
    if output_format == "json":
        shown = {"settings": settings, "options": options}
        described = {kind: [item.to_json() for item in items] for kind, items in shown.items()}
        click.echo(json.dumps(described, indent=2, ensure_ascii=False))
    else:
        _print_text([*settings, *options], verbose=verbose)
    for warning in _warnings(setting_names()):
        click.echo(f"warning: {warning}", err=True)


def _print_text(shown: Sequence[EffectiveSetting], *, verbose: bool) -> None:
    meanings = _meanings()
    width = max(len(item.name) for item in shown)
    value_width = min(40, max(len(item.text) for item in shown))
    for item in shown:
        click.echo(f"{item.name:<{width}}  {item.text:<{value_width}}  {item.source}")
        if verbose:
            click.echo(f"{'':<{width}}  {meanings[item.name]}")


def _meanings() -> dict[str, str]:
    from stagecoach.infra.config.described import described_fields
    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.infra.storage.object_store import StorageOptions
    from stagecoach.planner.options import PREFIX, PlannerOptions

    models = (("", EngineSettings), ("storage_options.", StorageOptions), (PREFIX, PlannerOptions))
    return {
        f"{prefix}{field.name}": field.meaning
        for prefix, model in models
        for field in described_fields(model)
    }


def _warnings(names: Sequence[str]) -> Iterator[str]:
    """Variables of the environment that are not read though they look like settings."""
    from stagecoach.infra.config.settings import OLD_VARIABLES, variable_of

    for name, old in OLD_VARIABLES.items():
        if os.environ.get(old) and os.environ.get(variable_of(name)):
            yield f"{old} is not read, because {variable_of(name)} is set"
    known = {variable_of(name) for name in names}
    others = {*known, *OLD_VARIABLES.values(), *_OTHER_VARIABLES}
    for variable in sorted(set(os.environ) - others):
        if not variable.startswith("STAGECOACH_"):
            continue
        if close := difflib.get_close_matches(variable, known, n=1, cutoff=0.85):
            yield f"{variable} is not a setting; did you mean {close[0]}?"
