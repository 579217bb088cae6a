"""Every path below the storage root, in one place.

In: fingerprints, run ids, names. Out: keys for `ObjectStore`. No component can escape the root:
each is checked against a whitelist, so a hostile query or partition name is an error, not a path.

    shuffle/<hex>/<fingerprint>/<task>-<attempt>.arrow   data of one attempt of one task
    shuffle/<hex>/<fingerprint>/index-<checksum>.arrow   columnar index of one commit
    shuffle/<hex>/<fingerprint>/manifest.json            the commit
    runs/<run>/snapshot.json                             the table snapshot of a run
    runs/<run>/stages/<stage>.json                       the manifest that the run pinned
    analysis/<plan_hash>.json                            Spark's own result schema of a plan
    results/<query>/<partition>/<version>/…              Parquet result, immutable
    results/<query>/<partition>/current.json             the version that readers see
"""

from __future__ import annotations

import hashlib
import re
import secrets

from infra.errors import StorageError

SHUFFLE_ROOT = "shuffle"
RUNS_ROOT = "runs"
RESULTS_ROOT = "results"
ANALYSIS_ROOT = "analysis"

_COMPONENT = re.compile(r"[A-Za-z0-9_=][A-Za-z0-9_.=+@-]{0,199}")
_HASH = re.compile(r"[0-9a-f]{8,128}")
_ATTEMPT = re.compile(r"[A-Za-z0-9_]{1,64}")
_MAP_FILE = re.compile(r"(\d{5,})-([A-Za-z0-9_]{1,64})\.arrow")
_UNPARTITIONED = "all"


def shuffle_prefix(fingerprint: str) -> str:
    """Return the folder of a stage's output; two hex digits spread object-store shards."""
    _check_hash("fingerprint", fingerprint)
    shard = hashlib.sha256(fingerprint.encode()).hexdigest()[:2]
    return f"{SHUFFLE_ROOT}/{shard}/{fingerprint}"


def new_attempt(number: int = 0) -> str:
    """Return an attempt token that no other process can draw, so files are never shared.

    Two runs that race for one fingerprint, or a speculative duplicate of a Spark task, may have
    the same attempt number; the random part keeps their files apart.
    """
    return f"{number}_{secrets.token_hex(6)}"


def map_file_name(task_index: int, attempt: str | int) -> str:
    """Return the name of a map file inside its shuffle prefix."""
    if task_index < 0 or not _ATTEMPT.fullmatch(str(attempt)):
        raise StorageError(
            f"task index {task_index}, attempt {attempt!r} cannot name a map file; the index must "
            "not be negative and the attempt must be 1 to 64 letters, digits or underscores"
        )
    return f"{task_index:05d}-{attempt}.arrow"


def map_file(fingerprint: str, task_index: int, attempt: str | int) -> str:
    """Return the key of the map file of one attempt of one task."""
    return f"{shuffle_prefix(fingerprint)}/{map_file_name(task_index, attempt)}"


def parse_map_file(key: str) -> tuple[int, str]:
    """Return the task index and the attempt of a map file's key or name."""
    match = _MAP_FILE.fullmatch(key.rsplit("/", 1)[-1])
    if match is None:
        raise StorageError(f"{key!r} is not the key of a map file; see layout.map_file")
    return int(match.group(1)), match.group(2)


def shuffle_file(fingerprint: str, name: str) -> str:
    """Return the key of a file that a manifest names."""
    return f"{shuffle_prefix(fingerprint)}/{_check('file name', name)}"


def manifest(fingerprint: str) -> str:
    """Return the key of a stage's manifest."""
    return f"{shuffle_prefix(fingerprint)}/manifest.json"


def index_name(content_hash: str) -> str:
    """Return the name of an index file; its content is in its name, so none is overwritten."""
    return f"index-{_check_hash('index hash', content_hash)[:32]}.arrow"


def run_prefix(run_id: str) -> str:
    """Return the folder of a run."""
    return f"{RUNS_ROOT}/{_check('run id', run_id)}"


def run_snapshot(run_id: str) -> str:
    """Return the key of the table snapshot of a run."""
    return f"{run_prefix(run_id)}/snapshot.json"


def run_stage(run_id: str, stage: str) -> str:
    """Return the key of a run's pointer to the manifest of a stage."""
    return f"{run_prefix(run_id)}/stages/{_check('stage', stage)}.json"


def analysis(plan_hash: str) -> str:
    """Return the key of Spark's own analysis of a plan."""
    return f"{ANALYSIS_ROOT}/{_check_hash('plan hash', plan_hash)}.json"


def result_prefix(query: str, partition_key: str | None = None) -> str:
    """Return the folder of a query's result for one Dagster partition key."""
    partition = _UNPARTITIONED if partition_key is None else f"p={_escape(partition_key)}"
    return f"{RESULTS_ROOT}/{_check('query', query)}/{partition}"


def result_version(query: str, version: str, partition_key: str | None = None) -> str:
    """Return the folder of one immutable version of a result."""
    return f"{result_prefix(query, partition_key)}/{_check('version', version)}"


def result_file(query: str, version: str, index: int, partition_key: str | None = None) -> str:
    """Return the key of the `index`-th Parquet file of a result version."""
    return f"{result_version(query, version, partition_key)}/{index:05d}.parquet"


def result_current(query: str, partition_key: str | None = None) -> str:
    """Return the key of the pointer to the published version of a result."""
    return f"{result_prefix(query, partition_key)}/current.json"


def _check(what: str, component: str) -> str:
    if not _COMPONENT.fullmatch(component):
        raise StorageError(
            f"{what} {component!r} cannot be part of a storage path; use letters, digits and "
            "_ . = + @ - (at most 200, not starting with . + @ or -)"
        )
    return component


def _escape(partition_key: str) -> str:
    """Return a Dagster partition key (any text) as a path component, one to one."""
    escaped = re.sub(
        r"[^A-Za-z0-9_.=+@-]",
        lambda match: "".join(f"~{byte:02X}" for byte in match.group().encode()),
        partition_key,
    )
    if len(escaped) > 200:
        raise StorageError(
            f"partition key {partition_key[:40]!r}… is too long for a storage path; "
            "its escaped form must have at most 200 characters"
        )
    return escaped


def _check_hash(what: str, value: str) -> str:
    if not _HASH.fullmatch(value):
        raise StorageError(f"{what} {value!r} is not 8 to 128 lower-case hex digits")
    return value
