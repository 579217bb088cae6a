"""Every path below the storage root, in one place.

Fingerprints, run ids and names become keys for `ObjectStore`. No component can escape the root:
each is checked against a whitelist, so a hostile query or partition name is an error, not a path.

    shuffle/<hex>/<fingerprint>/<task>-<attempt>.arrow   data of one attempt of one task; commits of
                                                         other outputs may name it, too
    shuffle/<hex>/<fingerprint>/index-<checksum>.arrow   columnar index of one commit
    shuffle/<hex>/<fingerprint>/manifest.json            the commit
    shuffle/<hex>/<fingerprint>/claim.json               who computes it just now
    shuffle/<hex>/<fingerprint>/lost-<hash>.json         that a commit has lost a file
    runs/<run>/snapshot.json                             the table snapshot of a run
    runs/<run>/stages/<stage>.json                       the manifest that the run pinned
    runs/<run>/plans/<plan_hash>.json                    the plan and the parameters of the run
    runs/<run>/page.html                                 how the run went, for people
    runs/<run>/logs/<stage>.log                          what the tasks of a failed stage said
    runs/<run>/stages/<stage>-base.json                  a commit from which it takes files over
    incremental/<stage key>.json                         the newest commit of an incremental stage
    plans/<query>/<key>.json                             the plan that a query keeps
    analysis/<plan_hash>.json                            Spark's own result schema of a plan
    results/<table>/…                                    a published table
    accepted/<table>/<fingerprint>.json                  a result that was published by hand
    iceberg/<table>/…, delta/<table>/…                   where a table published elsewhere is

What is in the folder of a table, its format says (`infra.formats.published.paths`). A table with
numbered versions has these in its folder:

    versions/<number>.json                               a version: the files that are live
    current.json                                         a hint which version is the newest
"""

from __future__ import annotations

import hashlib
import re
import secrets

from stagecoach.infra.errors import StorageError

SHUFFLE_ROOT = "shuffle"
RUNS_ROOT = "runs"
ANALYSIS_ROOT = "analysis"
PLANS_ROOT = "plans"
HINTS_ROOT = "incremental"

TABLE_VERSIONS = "versions"

_COMPONENT = re.compile(r"[A-Za-z0-9_=][A-Za-z0-9_.=+@-]{0,199}")
_HASH = re.compile(r"[0-9a-f]{8,128}")
_ATTEMPT = re.compile(r"[A-Za-z0-9_]{1,64}")
_MAP_FILE = re.compile(r"(\d{5,})-([A-Za-z0-9_]{1,64})\.arrow")
_VERSION_DIGITS = 12
_VERSION_FILE = re.compile(r"(\d{12})\.json")


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
    return f"{shuffle_prefix(fingerprint)}/{check_component('file name', name)}"


def manifest(fingerprint: str) -> str:
    """Return the key of a stage's manifest."""
    return f"{shuffle_prefix(fingerprint)}/manifest.json"


def claim(fingerprint: str) -> str:
    """Return the key of the claim of the run that computes a stage just now."""
    return f"{shuffle_prefix(fingerprint)}/claim.json"


def lost_mark(fingerprint: str, manifest_hash: str) -> str:
    """Return the key that says of one commit of a stage that its files are not all there."""
    name = f"lost-{_check_hash('manifest hash', manifest_hash)[:32]}.json"
    return f"{shuffle_prefix(fingerprint)}/{name}"


def is_lost_mark(key: str) -> bool:
    """Return whether a key is that of a mark of any lost commit."""
    return key.rsplit("/", 1)[-1].startswith("lost-")


def index_name(content_hash: str) -> str:
    """Return the name of an index file; its content is in its name, so none is overwritten."""
    return f"index-{_check_hash('index hash', content_hash)[:32]}.arrow"


def run_prefix(run_id: str) -> str:
    """Return the folder of a run."""
    return f"{RUNS_ROOT}/{check_component('run id', run_id)}"


def run_snapshot(run_id: str) -> str:
    """Return the key of the table snapshot of a run."""
    return f"{run_prefix(run_id)}/snapshot.json"


def run_clock(run_id: str) -> str:
    """Return the key of the instant that a run takes for now."""
    return f"{run_prefix(run_id)}/clock.txt"


def run_stage(run_id: str, stage: str) -> str:
    """Return the key of a run's pointer to the manifest of a stage."""
    return f"{run_prefix(run_id)}/stages/{check_component('stage', stage)}.json"


def run_plans(run_id: str) -> str:
    """Return the folder of the plans that a run went by; one, unless a re-execution had another."""
    return f"{run_prefix(run_id)}/plans"


def run_plan(run_id: str, plan_hash: str) -> str:
    """Return the key of a plan that a run went by, with the values of its parameters."""
    return f"{run_plans(run_id)}/{_check_hash('plan hash', plan_hash)}.json"


def hint(stage_key: str) -> str:
    """Return the key of the hint which commit of an incremental stage is the newest."""
    return f"{HINTS_ROOT}/{_check_hash('stage key', stage_key)}.json"


def run_page(run_id: str) -> str:
    """Return the key of the HTML page that shows how a run went."""
    return f"{run_prefix(run_id)}/page.html"


def run_log(run_id: str, stage: str) -> str:
    """Return the key of the log of a stage that failed in a run."""
    return f"{run_prefix(run_id)}/logs/{check_component('stage', stage)}.log"


def pinned_plan(query: str, key: str) -> str:
    """Return the key of the plan that a query keeps, by a hash of what it depends on."""
    return f"{PLANS_ROOT}/{check_component('query', query)}/{_check_hash('plan key', key)}.json"


def analysis(plan_hash: str) -> str:
    """Return the key of Spark's own analysis of a plan."""
    return f"{ANALYSIS_ROOT}/{_check_hash('plan hash', plan_hash)}.json"


def parse_table_version(key: str) -> int | None:
    """Return the number of a version's key or name, or None where it is another file."""
    match = _VERSION_FILE.fullmatch(key.rsplit("/", 1)[-1])
    return int(match.group(1)) if match else None


def log_versions(folder: str) -> str:
    """Return the folder of the versions of a log; `folder` may be empty, the store's root."""
    return f"{folder}/{TABLE_VERSIONS}" if folder else TABLE_VERSIONS


def log_version(folder: str, number: int) -> str:
    """Return the key of one version of a log, numbered from 1."""
    if not 1 <= number < 10**_VERSION_DIGITS:
        raise StorageError(f"version {number} in {folder!r} is out of range; count from 1")
    return f"{log_versions(folder)}/{number:0{_VERSION_DIGITS}d}.json"


def log_current(folder: str) -> str:
    """Return the key of the hint which version of a log is the newest."""
    return f"{folder}/current.json" if folder else "current.json"


def check_component(what: str, component: str) -> str:
    """Return a name that is to be part of a path.

    Args:
        what: What it names, for messages.
        component: The name.

    Raises:
        StorageError: It could lead elsewhere.
    """
    if not _COMPONENT.fullmatch(component):
        raise StorageError(
            f"{what} {component!r} cannot be part of a storage path; use letters, digits and "
            "_ . = + @ - (at most 200, not starting with . + @ or -)"
        )
    return component


def _check_hash(what: str, value: str) -> str:
    if not _HASH.fullmatch(value):
        raise StorageError(f"{what} {value!r} is not 8 to 128 lower-case hex digits")
    return value
