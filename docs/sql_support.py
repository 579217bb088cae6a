"""Writes docs/sql-support.md from the planner's registries: `python docs/sql_support.py`."""

import csv
from collections import Counter, defaultdict
from pathlib import Path

from planner.support import Support, support_of

DOCS = Path(__file__).parent
PAGE = DOCS / "sql-support.md"
# What Spark documents but no engine can be asked to do alike, or what differs in each run.
OUTSIDE = {
    "sketch_funcs": "sketches",
    "variant_funcs": "VARIANT",
    "xml_funcs": "XML",
    "st_funcs": "spatial types",
    "avro_funcs": "Avro",
    "csv_funcs": "CSV",
    "protobuf_funcs": "Protobuf",
}
SKETCHES = ("hll_", "kll_", "theta_", "tuple_", "approx_top_k", "count_min_sketch")
SESSION = {
    "current_catalog", "current_database", "current_path", "current_schema", "current_user",
    "input_file_block_length", "input_file_block_start", "input_file_name", "java_method",
    "monotonically_increasing_id", "reflect", "session_user", "spark_partition_id", "try_reflect",
    "user", "uuid", "version", "rand", "randn", "random", "randstr", "uniform", "shuffle",
    "collations", "sql_keywords", "python_worker_logs", "measure", "schema_of_variant_agg",
}  # fmt: skip
_WORDS = {
    "native": "DuckDB",
    "rewrite": "DuckDB, rewritten",
    "fallback": "Spark stage",
    "unknown": "whole query on Spark",
}


def functions() -> dict[str, list[str]]:
    """Spark's functions by group, those outside the aim left out."""
    found: dict[str, list[str]] = defaultdict(list)
    with (DOCS / "spark-functions.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name, group = row["function"], row["group"]
            outside = group in OUTSIDE or name in SESSION or name.startswith(SKETCHES)
            if not outside and not any(word in name for word in ("sketch", "variant")):
                found[group].append(name)
    return dict(sorted(found.items()))


def counted() -> Counter[str]:
    """How many functions run where."""
    return Counter(support_of(n).status for names in functions().values() for n in names)


def page() -> str:
    """The text of the page."""
    counts = counted()
    total = counts.total()
    native = counts["native"] + counts["rewrite"]
    lines = [
        "# Functions",
        "",
        "*Made by `make sql-support` from the planner's registries; do not edit.*",
        "",
        f"Of {total} functions and operators that Spark documents (without sketches, VARIANT, XML,",
        "spatial types, Avro, CSV and Protobuf, and without what depends on the session or",
        f"differs in each run) **{native} ({100 * native / total:.0f} %) run on DuckDB**, as they",
        "are or rewritten so that the values are Spark's.",
        f"{counts['fallback']} make their stage run on Spark,",
        f"and {counts['unknown']} the whole query.",
        "Every function that runs on DuckDB is compared with Spark on edge values by a test; for",
        "argument types that are not proven, its stage runs on Spark: `stagecoach explain` tells.",
    ]
    for group, names in functions().items():
        lines += ["", f"## {group.removesuffix('_funcs').replace('_', ' ').capitalize()}", ""]
        lines += ["| Function | Runs on | Note |", "|---|---|---|"]
        lines += [_row(name, support_of(name)) for name in names]
    return "\n".join(lines) + "\n"


def _row(name: str, support: Support) -> str:
    shown = name.replace("|", "\\|")
    return f"| `{shown}` | {_WORDS[support.status]} | {support.note} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
