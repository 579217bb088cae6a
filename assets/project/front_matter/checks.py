"""The key `checks`: what must hold of a query's result, one class for each kind of check."""

import datetime
import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    StrictBool,
    StrictInt,
    Tag,
    model_validator,
)

from stagecoach.assets.project.front_matter.base import Part
from stagecoach.assets.project.front_matter.places import AT_KEY, Location
from stagecoach.assets.project.front_matter.values import (
    ColumnName,
    ColumnNames,
    Duration,
    Identifier,
    Scalar,
    Text,
    refuse,
    refuse_all,
    scalar_text,
)
from stagecoach.assets.project.names import did_you_mean

_SHORTEST_FRESHNESS = datetime.timedelta(minutes=1)


class _Check(Part):
    """What the checks of all kinds have."""

    kind: ClassVar[str]

    severity: Literal["error", "warn"] = "error"
    """Whether a result that fails the check is an error or a warning."""
    blocking: StrictBool | None = None
    """Whether what reads the result waits until the check passed; true for errors by default."""

    @property
    def is_blocking(self) -> bool:
        """Whether what reads the result does not run after a failure."""
        return self.severity == "error" if self.blocking is None else self.blocking

    @property
    def check_name(self) -> str:
        """Its name in Dagster."""
        raise NotImplementedError

    @property
    def columns(self) -> tuple[tuple[Location, str], ...]:
        """The columns of the result that it looks at, each with its place in the check."""
        return ()

    @model_validator(mode="after")
    def _check_blocking(self) -> Self:
        if self.severity == "warn" and self.blocking:
            refuse_all([(("blocking",), "a warning blocks nothing; leave 'blocking' out")])
        return self


class _NamedCheck(_Check):
    name: Identifier | None = None
    """Its name in Dagster; made of its kind and its columns by default."""

    @property
    def check_name(self) -> str:
        """Its name in Dagster."""
        words = [self.kind, *(column for _, column in self.columns)]
        return self.name or re.sub(r"[^A-Za-z0-9_]+", "_", "_".join(words))


class NotNullCheck(_NamedCheck):
    """No row has NULL in these columns."""

    kind = "not_null"
    not_null: ColumnNames
    """Columns of the result."""

    @property
    def columns(self) -> tuple[tuple[Location, str], ...]:
        """The columns of the result that it looks at, each with its place in the check."""
        return _places("not_null", self.not_null)


class UniqueCheck(_NamedCheck):
    """No two rows are the same in these columns together."""

    kind = "unique"
    unique: ColumnNames
    """Columns of the result."""

    @property
    def columns(self) -> tuple[tuple[Location, str], ...]:
        """The columns of the result that it looks at, each with its place in the check."""
        return _places("unique", self.unique)


class AcceptedValues(Part):
    """A column and what it may hold."""

    column: ColumnName
    """Column of the result."""
    values: Annotated[tuple[Scalar, ...], Field(min_length=1)]
    """All values that it may hold; NULL is none of them, and passes."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The values as SQL spells them."""
        return tuple(scalar_text(value) or "" for value in self.values)


class AcceptedValuesCheck(_NamedCheck):
    """A column holds only values of a list."""

    kind = "accepted_values"
    accepted_values: AcceptedValues
    """The column and its values."""

    @property
    def columns(self) -> tuple[tuple[Location, str], ...]:
        """The columns of the result that it looks at, each with its place in the check."""
        return ((("accepted_values", "column"), self.accepted_values.column),)


class RowCount(Part):
    """Bounds, of which at least one is given."""

    min: Annotated[StrictInt, Field(ge=0)] | None = None
    """The fewest rows."""
    max: Annotated[StrictInt, Field(ge=0)] | None = None
    """The most rows."""

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        refuse_all(self._bound_problems())
        return self

    def _bound_problems(self) -> Iterator[tuple[Location, str]]:
        if self.min is None and self.max is None:
            yield (), "row_count has no bound; write {min: 1}, {max: 1000} or both"
        elif self.min is not None and self.max is not None and self.min > self.max:
            yield (
                ("max",),
                f"max {self.max} is less than min {self.min}; no result could pass; swap them",
            )


class RowCountCheck(_NamedCheck):
    """The result has as many rows as it should."""

    kind = "row_count"
    row_count: RowCount
    """The bounds."""


class Freshness(Part):
    """How old a result may be."""

    within: Duration
    """The longest time since the result was made, such as '26h'; at least a minute."""

    @model_validator(mode="after")
    def _check_within(self) -> Self:
        if self.within < _SHORTEST_FRESHNESS:
            refuse_all([(("within",), "Dagster looks once a minute; write at least '1m'")])
        return self


class FreshnessCheck(_NamedCheck):
    """The result is not older than it may be."""

    kind = "freshness"
    freshness: Freshness
    """How old it may be."""


class NoRows(Part):
    """A query that finds what must not be."""

    name: Identifier
    """What the check is called in Dagster."""
    sql: Annotated[Text, Field(min_length=1)]
    """One SELECT, which may read the query's own table; each of its rows is a failure."""


class NoRowsCheck(_Check):
    """A SELECT of the author's own returns no rows."""

    kind = "no_rows"
    no_rows: NoRows
    """Its name and SQL."""

    @property
    def check_name(self) -> str:
        """Its name in Dagster."""
        return self.no_rows.name


CHECKS: dict[str, type[_Check]] = {
    check.kind: check
    for check in (
        NotNullCheck,
        UniqueCheck,
        AcceptedValuesCheck,
        RowCountCheck,
        FreshnessCheck,
        NoRowsCheck,
    )
}


def _places(key: str, names: tuple[str, ...]) -> tuple[tuple[Location, str], ...]:
    return tuple(((key, i), name) for i, name in enumerate(names))


def _check_kind(value: Any) -> Any:
    """Refuse an item that is not of one kind, before its keys are looked at."""
    if isinstance(value, Part):
        return value
    if isinstance(value, str):
        raise refuse(
            f"a check is a mapping of its kind to what it checks, not '{value}'; "
            "write - not_null: [column]"
        )
    if not isinstance(value, dict):
        raise refuse(f"a check is a mapping, not {value!r}; write - not_null: [column]")
    kinds = [key for key in value if key in CHECKS]
    if len(kinds) > 1:
        problem = f"one item has the checks {' and '.join(kinds)}; begin each with '- '"
        refuse_all([((kinds[1], AT_KEY), problem)])
    if not kinds:
        common = {"name", "severity", "blocking"}
        unknown = [key for key in value if key not in common]
        if not unknown:
            raise refuse(f"the check has no kind; there are: {', '.join(CHECKS)}")
        word = unknown[0]
        refuse_all([((word, AT_KEY), f"there is no check '{word}'{did_you_mean(word, CHECKS)}")])
    return value


def _tag(value: Any) -> str:
    if isinstance(value, _Check):
        return f"<{value.kind}>"
    return f"<{next(key for key in value if key in CHECKS)}>"


Check = Annotated[
    Annotated[NotNullCheck, Tag("<not_null>")]
    | Annotated[UniqueCheck, Tag("<unique>")]
    | Annotated[AcceptedValuesCheck, Tag("<accepted_values>")]
    | Annotated[RowCountCheck, Tag("<row_count>")]
    | Annotated[FreshnessCheck, Tag("<freshness>")]
    | Annotated[NoRowsCheck, Tag("<no_rows>")],
    Discriminator(_tag),
    BeforeValidator(_check_kind),
]
