"""Writes docs/reference/settings.md from the models: `python docs/settings_reference.py`."""

from pathlib import Path

from infra.described import DescribedField, described_fields
from infra.settings import ENVIRONMENT_PREFIX, FILE_VARIABLE, EngineSettings, variable_of
from infra.storage.object_store import StorageOptions
from planner.options import PlannerOptions

PAGE = Path(__file__).parent / "reference" / "settings.md"


def page() -> str:
    """The text of the page."""
    lines = [
        "# Settings",
        "",
        "*Made by `make settings` from the models in the code; do not edit.*",
        "",
        "How to set them: [options and settings](../user-guide/options.md).",
        "`stagecoach config` shows the value of each and where it came from.",
        "",
        "## Settings of a run",
        "",
        "`EngineSettings` in `infra/settings.py`. Each has the same name in the settings file, in",
        "`--set engine.NAME=VALUE`, in `connect(settings={…})` and in Dagster's resource `engine`;",
        f"in the environment it is `{ENVIRONMENT_PREFIX}NAME` in upper case. The file is the one",
        f"that `{FILE_VARIABLE}` names. A number of bytes may have a unit: `256MB` is 256 × 2^20.",
        "",
        *_table(described_fields(EngineSettings)),
        "",
        "## Storage options",
        "",
        "`StorageOptions` in `infra/storage/object_store.py`: the values of the setting",
        "`storage_options`, JSON in `STAGECOACH_STORAGE_OPTIONS`.",
        "",
        *_table(described_fields(StorageOptions)),
        "",
        "## Planner options",
        "",
        "`PlannerOptions` in `planner/options.py`: the section `planner` of the settings file,",
        f"`{variable_of('planner.NAME')}` in the environment (upper case),",
        "`--set planner.NAME=VALUE` and `connect(options={…})`. Sizes may have a unit, too.",
        "",
        *_table(described_fields(PlannerOptions)),
    ]
    return "\n".join(lines) + "\n"


def _table(fields: tuple[DescribedField, ...]) -> list[str]:
    return ["| name | default | unit | meaning |", "|---|---|---|---|", *map(_row, fields)]


def _row(field: DescribedField) -> str:
    default = f"`{field.default_text}`" if field.default_text else ""
    # Outside code spans, the pipe alone has a meaning of its own in a table.
    meaning = field.meaning.replace("|", "\\|")
    return f"| `{field.name}` | {default} | {field.unit} | {meaning} |"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
