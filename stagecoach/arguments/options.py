"""Options that several commands share."""

from __future__ import annotations

import difflib
import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stagecoach.api.session import DEFAULT_CATALOG, connect
from stagecoach.api.storage_root import DEFAULT_STORAGE
from stagecoach.arguments.project_files import (
    ChosenFiles,
    choose_files,
    project_option,
    read_selection,
    selected_paths,
    selection_options,
)
from stagecoach.planner.engines.registry import engine_choices
from stagecoach.terminal.streams import announce_spark, configure_logging

if TYPE_CHECKING:
    from stagecoach.api.session import Session
    from stagecoach.assets.project.selection import Selection
    from stagecoach.infra.config.settings import WarmUsers

log = logging.getLogger(__name__)

_F = TypeVar("_F", bound=Callable[..., Any])
DEBUG_KEY = "stagecoach.debug"
_PREFIXES = ("planner", "engine", "spark")


@dataclass(frozen=True)
class Settings:
    """What `--set` and its shorthands say, by receiver."""

    planner: dict[str, object]
    engine: dict[str, object]

    def values(self) -> dict[str, object]:
        """All of them by name, options of the planner as `planner.…`."""
        return self.engine | {f"planner.{name}": value for name, value in self.planner.items()}


@dataclass(frozen=True, kw_only=True)
class ProjectRequest:
    """What a command that plans queries of a project is told, by `project_options`.

    Args:
        named: Files and folders; none for all queries of the project.
        project: The project's folder.
        catalog: The catalog file.
        settings: As `--set`, `--engine` and `--time-zone` say.
        offline: Whether Spark is never asked.
        debug: Whether tracebacks are shown.
        selection: Which queries; None for all.
    """

    named: tuple[Path, ...]
    project: Path
    catalog: str
    settings: Settings
    offline: bool
    debug: bool
    selection: Selection | None = None

    def files(self, verb: str) -> ChosenFiles:
        """The files that are named; `verb` says what the command does to them.

        Raises:
            click.UsageError: There is no such file, or none at all.
        """
        return choose_files(self.named, self.project, verb)

    def selected(self, files: ChosenFiles, session: Session, plans: Path) -> ChosenFiles:
        """Those of some files whose queries are selected.

        Args:
            files: The files.
            session: Has the macros of the project.
            plans: Folder of compiled plans.

        Raises:
            click.UsageError: There is no such query, table or tag.
        """
        if self.selection is None:
            return files
        paths = selected_paths(self.selection, files.files, session.base_catalog.macros, plans)
        chosen = tuple(path for path in files.chosen if path in paths)
        if not chosen:
            click.echo("no query is selected", err=True)
        return replace(files, chosen=chosen, whole=False)

    def session(self) -> Session:
        """A session over the base tables."""
        session = open_session(self.catalog, None, self.settings, offline=self.offline)
        if not self.debug:
            session.on_spark = announce_spark
        return session


@dataclass(frozen=True, kw_only=True)
class SessionRequest:
    """What a command that runs or explains queries is told, by `session_options`.

    Args:
        catalog: The catalog file.
        storage: The storage root, if it is given.
        params: Parameter values by name, as texts.
        settings: As `--set` and its shorthands say.
        quiet: Whether no progress is shown.
        debug: Whether tracebacks and the logs of Spark and Dagster are shown.
    """

    catalog: str
    storage: str | None
    params: dict[str, str]
    settings: Settings
    quiet: bool
    debug: bool

    def open(self, *, offline: bool = False) -> Session:
        """A session for the command."""
        return open_session(self.catalog, self.storage, self.settings, offline=offline)


def debug_option(command: _F) -> _F:
    """`--debug`, kept in the context's `meta`, where the error handler looks."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> bool:
        context.meta[DEBUG_KEY] = value
        return value

    return click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        callback=remember,
        help="Show tracebacks and the logs of Spark and Dagster.",
    )(command)


def catalog_option(command: _F) -> _F:
    """`--catalog`."""
    return click.option(
        "--catalog",
        metavar="CATALOG.yaml",
        default=DEFAULT_CATALOG,
        show_default=True,
        help="The catalog file, which lists the tables and their locations.",
    )(command)


def storage_option(command: _F) -> _F:
    """`--storage`."""
    return click.option(
        "--storage",
        metavar="URL",
        help="Folder or URL (s3://…) of the storage root: shuffles, runs, published tables.  "
        f"[default: $STAGECOACH_STORAGE_ROOT, or {DEFAULT_STORAGE}]",
    )(command)


def remote_option(command: _F) -> _F:
    """`--remote`."""
    return click.option(
        "--remote", metavar="URL", help="Use a Spark Connect server, sc://host:port."
    )(command)


def offline_option(command: _F) -> _F:
    """`--offline`."""
    return click.option(
        "--offline",
        is_flag=True,
        help="Never start Spark: a query that the planner does not understand is an error, though "
        "Spark might accept it.",
    )(command)


def text_or_json_option(command: _F) -> _F:
    """`--format`, of what is shown either to people or to programs: `output_format`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Output format.",
    )(command)


def planner_options(command: _F) -> _F:
    """What decides about a plan whatever the parameters: engine, time zone, `--set`."""
    decorators = [
        click.option(
            "--engine",
            type=click.Choice(engine_choices()),
            default=None,
            help="Engine of the stages: DuckDB where it is proven equal to Spark (auto, the "
            "default), DuckDB or an error, or Spark for all.",
        ),
        click.option(
            "--time-zone",
            metavar="ZONE",
            callback=_check_zone,
            help="Session time zone, an IANA name.  [default: UTC]",
        ),
        click.option(
            "--set",
            "assignments",
            metavar="KEY=VALUE",
            multiple=True,
            shell_complete=_keys,
            help="Set an option: planner.NAME, engine.NAME or a Spark setting spark.…; "
            "may be repeated.",
        ),
    ]
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def project_options(command: Callable[..., None]) -> Callable[..., None]:
    """Files of a project, its tables, and how they are planned: a `ProjectRequest` for `request`.

    The command's own options stand above it.
    """

    @functools.wraps(command)
    def run(
        *,
        named: tuple[Path, ...],
        project: Path,
        select: tuple[str, ...],
        exclude: tuple[str, ...],
        catalog: str,
        engine: str | None,
        time_zone: str | None,
        assignments: tuple[str, ...],
        remote: str | None,
        offline: bool,
        debug: bool,
        **own: Any,
    ) -> None:
        request = ProjectRequest(
            named=named,
            project=project,
            catalog=catalog,
            settings=read_settings(assignments, engine=engine, time_zone=time_zone, remote=remote),
            offline=offline,
            debug=debug,
            selection=read_selection(select, exclude),
        )
        command(request, **own)

    argument = click.argument(
        "named", metavar="[FILE.sql|FOLDER]…", nargs=-1, type=click.Path(path_type=Path)
    )
    spark = remote_option(offline_option(debug_option(run)))
    planning = planner_options(spark)
    return argument(catalog_option(project_option(selection_options(planning))))


def session_options(quiet_help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Tables, storage, parameters, planning and Spark: a `SessionRequest` for `request`.

    The command's own options stand above it.

    Args:
        quiet_help: What `--quiet` does.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(
            *,
            catalog: str,
            storage: str | None,
            params: tuple[str, ...],
            engine: str | None,
            time_zone: str | None,
            assignments: tuple[str, ...],
            master: str | None,
            remote: str | None,
            quiet: bool,
            debug: bool,
            **own: Any,
        ) -> None:
            from stagecoach.api.parameters import parse_assignments

            configure_logging(debug=debug)
            settings = read_settings(
                assignments, engine=engine, time_zone=time_zone, master=master, remote=remote
            )
            request = SessionRequest(
                catalog=catalog,
                storage=storage,
                params=parse_assignments(params),
                settings=settings,
                quiet=quiet,
                debug=debug,
            )
            command(request, **own)

        param = click.option(
            "--param",
            "params",
            metavar="NAME=VALUE",
            multiple=True,
            help="Value of the parameter :NAME in the SQL; may be repeated.",
        )
        master = click.option(
            "--master", metavar="MASTER", help="Spark master of this process.  [default: local[*]]"
        )
        quiet = click.option("--quiet", "-q", is_flag=True, help=quiet_help)
        spark = master(remote_option(quiet(debug_option(run))))
        return catalog_option(storage_option(param(planner_options(spark))))

    return decorate


def read_settings(
    assignments: tuple[str, ...],
    *,
    engine: str | None = None,
    time_zone: str | None = None,
    master: str | None = None,
    remote: str | None = None,
) -> Settings:
    """Sort `--set KEY=VALUE` and its shorthands by who reads them.

    Raises:
        click.BadParameter: An assignment has no `=` or an unknown prefix.
    """
    settings = Settings({}, {})
    spark: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        prefix, dot, name = key.strip().partition(".")
        if not equals or not dot or not name or prefix not in _PREFIXES:
            raise click.BadParameter(
                f"'{assignment}' is not KEY=VALUE with KEY one of planner.NAME, engine.NAME, "
                f"spark.NAME; {_near_key(key.strip(), value)}",
                param_hint="'--set'",
            )
        if prefix == "spark":
            spark[key.strip()] = value
        else:
            receiver = settings.planner if prefix == "planner" else settings.engine
            receiver[name] = value
    if spark:
        settings.engine["spark_conf"] = spark
    if engine:
        settings.planner["engine"] = engine
    if time_zone:
        settings.planner["time_zone"] = settings.engine["time_zone"] = time_zone
    for name, given in (("master", master), ("remote", remote)):
        if given:
            settings.engine[name] = given
    return settings


def _known_keys() -> dict[str, str]:
    """The keys of options that `--set` takes, with their names alone; not those of Spark."""
    from stagecoach.infra.config.settings import EngineSettings
    from stagecoach.planner.options import PlannerOptions

    models: dict[str, type[Any]] = {"planner": PlannerOptions, "engine": EngineSettings}
    return {
        f"{prefix}.{field.name}": field.name
        for prefix, model in models.items()
        for field in fields(model)
    }


def _keys(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """What a shell completes an argument of `--set` to."""
    return [f"{key}=" for key in _known_keys() if key.startswith(incomplete)]


def _near_key(key: str, value: str) -> str:
    """The option that a key with a wrong prefix or without one stands for, or an example."""
    known = _known_keys()
    meant = [name for name, short in known.items() if short == key.rpartition(".")[2]]
    meant = meant or difflib.get_close_matches(key, known, n=1)
    if meant:
        return f"did you mean {meant[0]}={value}?"
    return "for example --set planner.broadcast_bytes=0"


def open_session(
    catalog: str, storage: str | None, settings: Settings, *, offline: bool = False
) -> Session:
    """A session for a command; it uses a warm Spark of this machine if the settings let it."""
    session = connect(
        catalog, storage, settings=settings.engine, options=settings.planner, offline=offline
    )
    if session.settings.warm == "commands":
        session.settings = replace(session.settings, warm=_warm_users(session))
    return session


def _warm_users(session: Session) -> WarmUsers:
    # Code of the project may depend on the folder that the command runs in, and workers of a warm
    # Spark run in another one.
    if session.base_catalog.function_names():
        log.info("no warm Spark is used: the catalog declares functions of the project")
        return "never"
    return "always"


def _check_zone(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    from stagecoach.planner.option_values import is_time_zone

    if value is not None and not is_time_zone(value):
        raise click.BadParameter(
            f"'{value}' is not a valid time zone; give an IANA name such as UTC or Europe/Berlin, "
            "or an offset such as +02:00"
        )
    return value
