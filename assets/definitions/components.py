"""The `dg` component: a project's definitions from a `defs.yaml`.

    type: stagecoach.StagecoachProject
    attributes:
      queries: "{{ project_root }}/queries"
      catalog: "{{ project_root }}/catalog.yaml"
      storage: s3://warehouse/stagecoach
      translation:
        key_prefix: [warehouse]
        group_name: "{{ query.front_matter.group or 'sql' }}"
      gc: {older_than: 7d, cron: "0 3 * * *"}
      verify: {cron: "0 4 * * 0"}

It takes all that `build_definitions` takes. As dagster-dbt's component does, `translation` has the
last word on the assets of stages. A subclass can say more in Python: `translator_class` is the one
that stages go through, `get_plan` the way in which queries are planned.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

import dagster as dg
from dagster.components.resolved.context import ResolutionContext
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver

from stagecoach.assets.automation.garbage_collection import GarbageCollection
from stagecoach.assets.automation.verification import StorageVerification
from stagecoach.assets.definitions.location import build_definitions
from stagecoach.assets.definitions.new_component import ComponentScaffolder
from stagecoach.assets.definitions.translation import translated
from stagecoach.assets.definitions.translator import StageProps, StageTranslator
from stagecoach.assets.execution.resources import EngineResource
from stagecoach.assets.plans.planned import PlanQuery
from stagecoach.assets.project.front_matter import StagesAs

PLANS_FOLDER = "plans"


def _resolve_path(context: ResolutionContext, value: str) -> str:
    """A path of `defs.yaml`: relative to its folder; URLs as they are."""
    text = context.resolve_value(value, as_type=str)
    return text if "://" in text else str(context.resolve_source_relative_path(text))


def _resolve_texts(context: ResolutionContext, values: Mapping[str, Any]) -> Mapping[str, str]:
    """Values as the texts that `--set` takes."""
    found = context.resolve_value(values)
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in found.items()}


def _path(description: str, *examples: str) -> dg.Resolver:
    return dg.Resolver(
        _resolve_path, model_field_type=str, description=description, examples=list(examples)
    )


_Texts: TypeAlias = Mapping[str, str | int | float | bool]


@dg.scaffold_with(ComponentScaffolder)
@dataclass
class StagecoachProject(dg.Component, dg.Resolvable):
    """SQL queries as Dagster assets: one asset, one Spark job, one durable shuffle per stage."""

    queries: Annotated[
        str,
        _path("Folder of the queries, `*.sql`.", "queries", "{{ project_root }}/queries"),
    ]
    catalog: Annotated[
        str,
        _path("The catalog file, which lists the base tables and their locations.", "catalog.yaml"),
    ]
    storage: Annotated[
        str | None,
        _path("Folder or URL of shuffles, runs and results.", "s3://warehouse/stagecoach"),
    ] = None
    plans: Annotated[
        str | None,
        _path(
            "Folder of compiled plans (`stagecoach compile`); by default `plans` beside the "
            "queries, if there is one.",
            "plans",
        ),
    ] = None
    options: Annotated[
        Mapping[str, str],
        dg.Resolver(
            _resolve_texts,
            model_field_type=_Texts,
            description="Options of the planner, by name, above settings file and environment.",
            examples=[{"num_partitions": 64}],
        ),
    ] = field(default_factory=dict)
    settings: Annotated[
        Mapping[str, str],
        dg.Resolver(
            _resolve_texts,
            model_field_type=_Texts,
            description="Settings of runs, by name; no secrets, which the UI would show.",
            examples=[{"remote": "sc://spark:15002"}],
        ),
    ] = field(default_factory=dict)
    settings_file: Annotated[
        str | None, _path("A YAML file of settings; `settings` win over it.", "stagecoach.yaml")
    ] = None
    schedules_run: Annotated[
        bool,
        dg.Resolver.default(
            description="Whether schedules and automation run before anybody has turned them on."
        ),
    ] = True
    missing_data_hint: Annotated[
        str,
        dg.Resolver.default(
            description="What to do where the data of a table cannot be had, for the message.",
            examples=["Run `make demo`."],
        ),
    ] = ""
    stages: Annotated[
        StagesAs,
        dg.Resolver.default(
            description="Whether stages are assets of their own (`assets`), or ops of their "
            "query's asset (`ops`), where the front matter of a query does not say."
        ),
    ] = "assets"
    audit: Annotated[
        bool,
        dg.Resolver.default(
            description="Whether results are published only after their blocking checks have "
            "passed, where the front matter of a query does not say."
        ),
    ] = True
    gc: Annotated[
        GarbageCollection | None,
        dg.Resolver.default(
            description="When a job collects garbage in the storage root, and what is garbage: "
            "`older_than`, `cron` and `timezone`, each with a default; by default there is no such "
            "job.",
            examples=[{"older_than": "7d", "cron": "0 3 * * *", "timezone": "Europe/Berlin"}],
        ),
    ] = None
    verify: Annotated[
        StorageVerification | None,
        dg.Resolver.default(
            description="When a job verifies all that is stored: `cron` and `timezone`, each with "
            "a default; by default there is no such job.",
            examples=[{"cron": "0 4 * * 0", "timezone": "Europe/Berlin"}],
        ),
    ] = None
    table_assets: Annotated[
        bool,
        dg.Resolver.default(
            description="Whether base tables are assets of this project; false where other "
            "definitions of the code location make them."
        ),
    ] = True
    translation: Annotated[
        TranslationFn[StageProps] | None,
        TranslationFnResolver[StageProps](
            lambda props: {
                "query": props.query,
                "stage": props.stage,
                "is_head": props.is_head,
            }
        ),
    ] = None
    table_translation: Annotated[
        TranslationFn[str] | None, TranslationFnResolver[str](lambda table: {"table": table})
    ] = None

    translator_class: ClassVar[type[StageTranslator]] = StageTranslator
    """How stages look before `translation`; a subclass may name its own."""

    def get_translator(self) -> StageTranslator:
        """How stages and base tables look."""
        return translated(
            self.translator_class,
            self.translation,
            self.table_translation,
            table_assets=self.table_assets,
        )

    def get_plan(self) -> PlanQuery | None:
        """How queries are planned; None, as it is here, is as `build_definitions` has it."""
        return None

    def get_executor(self) -> dg.ExecutorDefinition | None:
        """What runs the steps of a run; None, as it is here, is as `build_definitions` has it."""
        return None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions; Dagster calls this."""
        plans = Path(self.plans or Path(self.queries).parent / PLANS_FOLDER)
        engine = EngineResource(
            catalog=self.catalog,
            storage_root=self.storage or "",
            settings_file=self.settings_file or "",
            settings=self.settings,
        )
        return build_definitions(
            queries=self.queries,
            catalog=self.catalog,
            storage=self.storage,
            plans=plans if self.plans or plans.is_dir() else None,
            translator=self.get_translator(),
            options=engine.configuration().planner.updated(self.options, "component"),
            engine=engine,
            plan=self.get_plan(),
            executor=self.get_executor(),
            schedules_run=self.schedules_run,
            missing_data_hint=self.missing_data_hint,
            stages=self.stages,
            audit=self.audit,
            gc=self.gc,
            verify=self.verify,
        )
