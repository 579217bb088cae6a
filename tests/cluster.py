"""A standalone Spark cluster for tests: two workers without credentials or packages of ours.

Use the session fixture `cluster`; it lasts for all tests of a process that ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.cluster.standalone import StandaloneCluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Start the cluster once a session."""
    with StandaloneCluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found
