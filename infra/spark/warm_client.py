"""Finds a warm Spark of this user that computes what one of this process would compute."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stagecoach.infra.spark.announcements import Announcement, Found, Hold, find_servers
from stagecoach.infra.spark.connect_server import is_up
from stagecoach.infra.spark.likeness import difference, digests, likeness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stagecoach.infra.config.settings import EngineSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class WarmUse:
    """A warm server that this process may use, and that stays while it does.

    Args:
        url: Its address.
        token: What it must be shown.
        hold: Keeps it from ending; to be released.
    """

    url: str
    token: str = field(repr=False)
    hold: Hold


def use_warm_server(settings: EngineSettings) -> WarmUse | None:
    """Return a server that is as good as one of this process's own; None, and why not, in a log.

    Args:
        settings: Those that this process would start a Spark with.
    """
    servers = find_servers()
    if not servers:
        return None
    mine = likeness(settings, os.environ)
    for found in servers:
        server = found.announcement
        problem = mismatch(server, mine)
        if problem is None and not is_up(server.url):
            problem = "it does not answer"
        if problem is None:
            if (hold := found.hold()) is not None:
                log.info("using the warm Spark at %s", server.url)
                return WarmUse(server.url, server.token, hold)
            problem = "it is ending"
        # Of the command `warm` its user knows that it is to be used.
        level = logging.WARNING if server.owner == "warm" else logging.INFO
        log.log(level, "the Spark of `stagecoach %s` is not used here: %s", server.owner, problem)
    return None


def matching_server(settings: EngineSettings) -> Found | None:
    """Return a server that this process would use, without using it."""
    servers = find_servers()
    mine = likeness(settings, os.environ) if servers else {}
    fitting = (found for found in servers if mismatch(found.announcement, mine) is None)
    return next((found for found in fitting if is_up(found.announcement.url)), None)


def mismatch(server: Announcement, mine: Mapping[str, str]) -> str | None:
    """Return why a process cannot use the server, in words; None where it can.

    Args:
        server: The server.
        mine: The likeness of the process.
    """
    name = difference(digests(mine, server.token), server.digests)
    if name is None:
        return None
    return f"it has {'other' if name.endswith('s') else 'another'} {name}"
