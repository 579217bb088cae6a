"""Times on the command line, such as `12h` or `7d`."""

from __future__ import annotations

import datetime

import click


class AgeType(click.ParamType[datetime.timedelta]):
    """A time such as `12h` or `7d`."""

    name = "age"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime.timedelta:
        """The time that a text tells; click shows what is wrong with it."""
        if isinstance(value, datetime.timedelta):
            return value
        from stagecoach.infra.errors import ConfigError
        from stagecoach.infra.upkeep.ages import parse_age

        try:
            return parse_age(str(value))
        except ConfigError as error:
            self.fail(str(error), param, ctx)
