"""Which run's tables and outputs a re-execution reads."""

from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from stagecoach.assets.execution.requests import first_run_id


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def rerun(
    instance: dg.DagsterInstance,
    parent: dg.DagsterRun,
    steps: list[str] | None = None,
    tags: dict[str, str] | None = None,
) -> dg.DagsterRun:
    return create_run_for_test(
        instance,
        job_name="run_q",
        parent_run_id=parent.run_id,
        root_run_id=parent.root_run_id or parent.run_id,
        step_keys_to_execute=steps,
        tags=tags,
    )


def test_from_failure_goes_on_and_all_steps_begin_anew(instance: dg.DagsterInstance) -> None:
    first = create_run_for_test(instance, job_name="run_q")
    assert first_run_id(instance, first) == first.run_id
    again = rerun(instance, rerun(instance, first, ["q"]), ["q"])
    assert first_run_id(instance, again) == first.run_id
    anew = rerun(instance, again)
    assert anew.root_run_id == first.run_id
    assert first_run_id(instance, anew) == anew.run_id
    assert first_run_id(instance, rerun(instance, anew, ["q"])) == anew.run_id


def test_a_choice_of_assets_from_failure_goes_on(instance: dg.DagsterInstance) -> None:
    first = create_run_for_test(instance, job_name="run_q")
    again = rerun(instance, first, tags={"dagster/is_asset_resume_retry": "true"})
    assert first_run_id(instance, again) == first.run_id


def test_a_parent_that_is_deleted(instance: dg.DagsterInstance) -> None:
    first = create_run_for_test(instance, job_name="run_q")
    second = rerun(instance, first, ["q"])
    third = rerun(instance, second, ["q"])
    instance.delete_run(second.run_id)
    assert first_run_id(instance, third) == first.run_id
