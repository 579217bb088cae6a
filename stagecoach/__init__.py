"""The front door: the command line and the few names that are public API."""

from __future__ import annotations

from stagecoach.result import Result as Result
from stagecoach.session import Session as Session
from stagecoach.session import connect as connect
