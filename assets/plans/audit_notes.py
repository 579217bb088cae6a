"""Queries whose blocking checks cannot keep readers from seeing a bad result."""

from collections.abc import Iterable, Iterator

from stagecoach.assets.project.queries import Query


def audit_notes(queries: Iterable[Query]) -> Iterator[tuple[str, str]]:
    """Say which results are published before their blocking checks run, although nobody asks so.

    Args:
        queries: The queries.

    Yields:
        The file, and what is to be said of it.
    """
    for query in queries:
        front_matter = query.front_matter
        if front_matter.output.audit is False or not front_matter.has_blocking_checks:
            continue
        if not front_matter.is_audited(by_default=True):
            output = front_matter.output
            how = "in mode merge" if front_matter.output_mode == "merge" else ""
            how = how or f"in tables of the format '{output.format_name}'"
            yield (
                query.source,
                f"results {how} are published before their checks run, so readers may see one that "
                "fails a blocking check; output: {audit: false} says that this is known",
            )
