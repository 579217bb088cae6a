"""Looks for a Java that Spark can run on."""

from __future__ import annotations

import os
from collections.abc import Iterator

from stagecoach.doctor.findings import Finding, error, ok, skipped, warning
from stagecoach.doctor.place import Place
from stagecoach.infra.errors import ConfigError
from stagecoach.infra.spark.java import find_java

_ADVICE = "install Java 17 or newer, or set JAVA_HOME to one"


class JavaCheck:
    """Java of this machine; executors have their own, without which they would not be there."""

    name = "java"

    def run(self, place: Place) -> Iterator[Finding]:
        """Yield which Java Spark starts with."""
        if place.settings.remote:
            yield skipped("none is needed for a Spark Connect server")
            return
        try:
            home = find_java()
        except ConfigError as problem:
            yield error(str(problem), _ADVICE)
            return
        given = os.environ.get("JAVA_HOME")
        if given and os.path.realpath(given) != os.path.realpath(home):
            yield warning(f"JAVA_HOME={given} is not used; Spark runs on {home}", _ADVICE)
        else:
            yield ok(f"Java in {home}")
