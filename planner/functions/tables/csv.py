"""Functions of lines of CSV."""

from __future__ import annotations

from stagecoach.planner.functions.csv_schemas import refuse_schema_of_csv, schema_of_csv
from stagecoach.planner.functions.function import Function, listed
from stagecoach.planner.functions.rules import fixed
from stagecoach.planner.functions.signatures import signature
from stagecoach.planner.functions.spell_csv import from_csv, refuse_from_csv, refuse_to_csv, to_csv
from stagecoach.planner.functions.tables.json import schema_type
from stagecoach.planner.types import STRING

_READ = signature("from_csv(string, string, [map<string,string>])")
_SCHEMA = signature("schema_of_csv(string, [map<string,string>]) -> string")
_WRITTEN = signature("to_csv(struct, [map<string,string>]) -> string")


FUNCTIONS: tuple[Function, ...] = (
    Function("from_csv", (2, 3), _READ.check, schema_type, listed("from_csv({*})"), from_csv, refuse_from_csv, "csv"),
    Function("schema_of_csv", (1, 2), _SCHEMA.check, fixed(STRING), listed("schema_of_csv({*})"), schema_of_csv, refuse_schema_of_csv, "csv"),
    Function("to_csv", (1, 2), _WRITTEN.check, fixed(STRING), listed("to_csv({*})"), to_csv, refuse_to_csv, "csv"),
)  # fmt: skip
