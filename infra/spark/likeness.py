"""What a Spark that somebody else has started must share with this process to compute the same.

A warm Spark runs tasks with the code, the libraries and the environment of whoever started it. Its
workers open tables and shuffle files by themselves, so credentials, proxies and rights of files are
those of that environment, too. A process therefore uses it only where all of this is equal. It is
compared by keyed digests: values may be secrets, and names alone are enough to say what differs.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

from stagecoach.infra.config.settings import ENVIRONMENT_PREFIX, EngineSettings
from stagecoach.infra.host.umask import umask
from stagecoach.infra.spark.connect_conf import TOKEN_VARIABLE, code_digest, spark_home

CLIENT_VARIABLES = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""Variables of a Connect client, which no server gets."""

_VARIABLE = "variable "
_PYTHON_PATH = "PYTHONPATH"
_DIGEST_DIGITS = 32
# Of terminals, shells and desktops: they differ from one window to the next, and no task reads
# them. All others count, because nobody can tell what a library or its credentials depend on.
_OF_TERMINALS = frozenset(
    [
        *("_", "PWD", "OLDPWD", "SHLVL", "TERM", "COLORTERM", "COLUMNS", "LINES", "TERMCAP"),
        *("TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "WINDOWID", "WINDOW", "STY"),
        *("TMUX", "TMUX_PANE", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"),
        *("SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK", "SSH_AGENT_PID"),
        *("GPG_TTY", "GPG_AGENT_INFO", "LS_COLORS", "LSCOLORS", "CLICOLOR", "NO_COLOR"),
        *("FORCE_COLOR", "LESS", "LESSOPEN", "LESSCLOSE", "PAGER", "EDITOR", "VISUAL"),
        *("PS1", "PS2", "PROMPT", "PROMPT_COMMAND", "HISTFILE", "HISTSIZE", "HISTFILESIZE"),
        *("HISTCONTROL", "VIRTUAL_ENV_PROMPT", "DBUS_SESSION_BUS_ADDRESS", "SESSION_MANAGER"),
        *("DESKTOP_SESSION", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_SESSION_CLASS"),
        *("XDG_SESSION_DESKTOP", "XDG_CURRENT_DESKTOP", "XDG_SEAT", "XDG_VTNR", "INVOCATION_ID"),
        *("JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "MANAGERPID", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"),
        *("MAKE_TERMOUT", "MAKE_TERMERR"),
    ]
)
_OF_TERMINAL_PROGRAMS = (
    *("ALACRITTY_", "GNOME_TERMINAL_", "ITERM_", "KITTY_", "KONSOLE_", "VSCODE_", "VTE_"),
    *("WEZTERM_", "ZELLIJ", "DAGSTER_", "JPY_"),
)


def likeness(settings: EngineSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return all that two processes must have in common to share a Spark, by what to call it.

    Args:
        settings: Those that the Spark is started with.
        environment: Variables of the process that starts it.
    """
    rights = f"{os.geteuid()} {os.getegid()} {sorted(os.getgroups())} {umask():o}"
    found = {
        "version of Stagecoach's code": code_digest(),
        "Python": f"{sys.executable} {sys.version} {sys.prefix}",
        "installed packages": _states(_package_folders()),
        "Spark": f"{spark_home()} {_states(_spark_files(environment))}",
        "setting master": settings.master,
        "setting spark_conf": json.dumps(dict(settings.spark_conf), sort_keys=True),
        "credentials files of AWS": _states(_aws_files(environment)),
        "user, groups and umask": rights,
    }
    found |= {
        f"{_VARIABLE}{name}": _absolute(value) if name == _PYTHON_PATH else value
        for name, value in environment.items()
        if not _is_ignored(name)
    }
    return found


def digests(values: Mapping[str, str], key: str) -> dict[str, str]:
    """Return a digest of each value, from which nobody without the key can guess it."""
    secret = key.encode()
    return {
        name: hmac.new(secret, value.encode(errors="surrogateescape"), hashlib.sha256).hexdigest()[
            :_DIGEST_DIGITS
        ]
        for name, value in values.items()
    }


def difference(mine: Mapping[str, str], other: Mapping[str, str]) -> str | None:
    """Return the name of something that differs, the most telling one; None if nothing does.

    Args:
        mine: Digests of one likeness.
        other: Those of another one, with the same key.
    """
    differing = {name for name in mine.keys() | other.keys() if mine.get(name) != other.get(name)}
    return min(differing, key=lambda name: (name.startswith(_VARIABLE), name), default=None)


def _absolute(path: str) -> str:
    """A path variable with whole paths: a relative one means another folder in each folder."""
    return os.pathsep.join(map(os.path.abspath, path.split(os.pathsep)))


def _is_ignored(name: str) -> bool:
    return (
        name in _OF_TERMINALS
        or name in CLIENT_VARIABLES
        or name == TOKEN_VARIABLE
        # What tasks need of our settings they are told.
        or name.startswith((ENVIRONMENT_PREFIX, *_OF_TERMINAL_PROGRAMS))
    )


def _package_folders() -> Iterable[Path]:
    """Where packages are installed: each installation adds or removes something there."""
    return [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]


def _spark_files(environment: Mapping[str, str]) -> Iterable[Path]:
    """What Spark itself is configured by, besides its variables."""
    folder = Path(environment.get("SPARK_CONF_DIR") or Path(spark_home(), "conf"))
    return [folder / name for name in ("spark-defaults.conf", "spark-env.sh", "log4j2.properties")]


def _aws_files(environment: Mapping[str, str]) -> Iterable[Path]:
    """What workers have read credentials from, and would not read again."""
    home = Path(environment.get("HOME", "~"), ".aws")
    return [
        Path(environment.get("AWS_CONFIG_FILE") or home / "config"),
        Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials"),
    ]


def _states(paths: Iterable[Path]) -> str:
    """The paths, each with what changes when it is written."""
    states: list[str] = []
    for path in paths:
        try:
            found = path.stat()
            states.append(f"{path} {found.st_ino} {found.st_size} {found.st_mtime_ns}")
        except OSError:
            states.append(f"{path} -")
    return "\n".join(states)
