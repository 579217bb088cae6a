"""How a driver is asked and tells: lines of JSON on standard input and output."""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from stagecoach.planner.errors import StagecoachError


class Teller:
    """Writes events to what was standard output, which Spark's own lines must not disturb."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def tell(self, event: str, **values: Any) -> None:
        with self._lock:
            self._stream.write(json.dumps({"event": event, **values}) + "\n")
            self._stream.flush()


def serve(run: Callable[[Mapping[str, Any], Teller], None]) -> None:
    """Run what each line asks for, and tell of errors."""
    teller = Teller()
    teller.tell("ready")
    for line in sys.stdin:
        try:
            run(json.loads(line), teller)
        except Exception as error:  # noqa: BLE001 - whatever it is, the campaign judges it
            traceback.print_exc()
            teller.tell("ended", ok=False, **told(error))


def told(error: BaseException) -> dict[str, Any]:
    """An error as an event tells of it, and whether it is one of ours."""
    is_ours = isinstance(error, StagecoachError)
    return {"ours": is_ours, "error": f"{type(error).__name__}: {error}"}
