"""Which GraphQL documents a request without a body may carry.

A browser sends GET requests for any page that has an image or a link, so they must change nothing.
The parser is the one that Dagster runs documents with, so both see the same operations.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphql import GraphQLError, OperationDefinitionNode, OperationType, parse


def changes_something(documents: Iterable[str]) -> bool:
    """Whether one of these texts is a document with a mutation or a subscription.

    All operations of a document count, whichever one `operationName` chooses. A text that is not a
    document is left to Dagster, which refuses it with the parser's message.
    """
    return any(not _only_reads(document) for document in documents)


def _only_reads(document: str) -> bool:
    try:
        definitions = parse(document, no_location=True).definitions
    except GraphQLError:
        return True
    return all(
        definition.operation is OperationType.QUERY
        for definition in definitions
        if isinstance(definition, OperationDefinitionNode)
    )
