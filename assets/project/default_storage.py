"""Where a project keeps its data by default."""

from pathlib import Path

from stagecoach.infra.config.settings import load_configuration


def default_storage(root: Path | str) -> Path | str | None:
    """The storage root of a project, unless the environment or the settings file names another.

    Args:
        root: A folder or URL.

    Returns:
        It, or None where the settings have a storage root.

    Raises:
        ConfigError: The settings file cannot be read, or a setting does not fit.
    """
    return None if "storage_root" in load_configuration().sources else root
