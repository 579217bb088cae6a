"""The Python packages that executors need, beside Spark itself.

Our own code is not one of them: every session ships it (`infra.spark.code_archive`).
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

EXECUTOR_PACKAGES = (
    "arro3-compute",
    "duckdb",
    "fsspec",
    "google-crc32c",
    "numpy",
    "pandas",
    "pyarrow",
    "s3fs",
)
"""Distributions that worker code imports, and pandas, which pyspark wants for Arrow."""

COMPARED_PACKAGES = ("duckdb", "pyarrow")
"""Those whose version must be the driver's: another one may give other rows or other bytes."""


def executor_requirements() -> tuple[str, ...]:
    """The packages with the versions of this process, as pip takes them: `duckdb==2.0.0`."""
    return tuple(f"{name}=={found}" for name in EXECUTOR_PACKAGES if (found := installed(name)))


def installed(name: str) -> str | None:
    """The installed version of a distribution; None if there is none."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
