"""Quick tests over the ends of the version ranges in `pyproject.toml`: `make matrix`.

Each session installs the lock file and then replaces one dependency. DuckDB has one version in its
range: before 2.0 its optimizer rules have other names, and functions were proven against 2.0.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True

VERSIONS = (
    ("dagster", "1.13.16"),
    ("dagster", "1.13.27"),
    ("pyarrow", "25.0.1"),
    ("pyarrow", "26.0.1"),
)
# What uses the package, as far as quick tests go; the rest of the suite starts a JVM.
TESTS = {"dagster": ("tests/assets", "tests/stagecoach"), "pyarrow": ("tests/infra",)}


@nox.session
@nox.parametrize("package, version", VERSIONS)
def tests(session: nox.Session, package: str, version: str) -> None:
    """Run the quick tests of what uses one dependency, with one version of it."""
    pins = [f"{package}=={version}"]
    if package == "dagster":
        pins.append(f"dagster-webserver=={version}")
    session.install("--no-deps", "-r", "requirements.lock")
    session.install(*pins)
    session.install("--no-deps", "--no-build-isolation", "-e", ".")
    session.run("python", "-m", "pytest", "-q", "-m", "not slow", *TESTS[package], *session.posargs)
