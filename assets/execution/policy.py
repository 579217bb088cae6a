"""How the steps of a query are run: pool, retries and time limit.

Pool, retries and time limit are Dagster's business and the executor's, so they are in no plan and
change no fingerprint.
"""

from dataclasses import dataclass, replace
from typing import Literal

from stagecoach.assets.project.front_matter import FrontMatter
from stagecoach.planner.errors import OptionError

Backoff = Literal["exponential", "linear", "none"]

DEFAULT_MAX_RETRIES = 2
DEFAULT_RETRY_DELAY_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class ExecutionPolicy:
    """How every stage of a query is run.

    Args:
        pool: Dagster's pool whose limit the stages share with others; None for none.
        max_retries: How often a stage that failed is tried again where its error says that this can
            help: a fault of storage or machine, never a mistake in the SQL.
        retry_delay_seconds: Wait before the first retry.
        backoff: How the wait grows from one retry to the next: doubled, by the first wait, or not.
        timeout_seconds: How long a stage may take before it is cancelled and fails; None for as
            long as it takes.

    Raises:
        OptionError: A number is out of its range.
    """

    pool: str | None = None
    max_retries: int = DEFAULT_MAX_RETRIES
    retry_delay_seconds: float = DEFAULT_RETRY_DELAY_SECONDS
    backoff: Backoff = "exponential"
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.max_retries < 0:
            raise OptionError(f"max_retries is {self.max_retries}; it must be 0 or more")
        if self.retry_delay_seconds < 0:
            raise OptionError(
                f"retry_delay_seconds is {self.retry_delay_seconds}; it must be 0 or more"
            )
        if self.timeout_seconds is not None and self.timeout_seconds <= 0:
            raise OptionError(f"timeout_seconds is {self.timeout_seconds}; it must be above 0")

    def wait_seconds(self, retries: int) -> float:
        """How long to wait before the next retry.

        Args:
            retries: How many there have been.
        """
        match self.backoff:
            case "exponential":
                return self.retry_delay_seconds * 2.0**retries
            case "linear":
                return self.retry_delay_seconds * (retries + 1)
        return self.retry_delay_seconds


def execution_policy(front_matter: FrontMatter) -> ExecutionPolicy:
    """What the author of a query asks for."""
    retries, timeout = front_matter.retries, front_matter.timeout
    policy = ExecutionPolicy(
        pool=front_matter.pool,
        timeout_seconds=timeout.total_seconds() if timeout is not None else None,
    )
    if retries is None:
        return policy
    return replace(
        policy,
        max_retries=retries.max,
        retry_delay_seconds=float(retries.delay_seconds),
        backoff=retries.backoff,
    )
