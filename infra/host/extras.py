"""Checks that an optional part of the installation is present before it is used.

The base installation runs queries. What only some machines need, such as the web UI, is an extra of
the package; without it, a command fails at once and names the extra rather than a module.
"""

from __future__ import annotations

import importlib.util

from stagecoach.infra.errors import ConfigError


def require_extra(extra: str, module: str, purpose: str) -> None:
    """Check that the packages of an extra are installed.

    Args:
        extra: Name of the extra in `pyproject.toml`, such as `ui`.
        module: A module that the extra installs.
        purpose: What needs it, for the message.

    Raises:
        ConfigError: The module is not installed.
    """
    if importlib.util.find_spec(module) is None:
        raise ConfigError(f"{purpose} needs the extra '{extra}': pip install 'stagecoach[{extra}]'")
