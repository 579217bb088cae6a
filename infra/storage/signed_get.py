"""GET requests to S3 for less than half of the processor time of botocore's own.

Worker code. botocore takes about a millisecond to build a request and to parse its answer, which is
more than a server needs to send a range of a file. Here botocore signs the request, and no more:
the presigned URL is fetched over the client's own connections, so proxies, certificates and
time-outs are those of all its requests. An answer that is not the object's bytes is left to
botocore: it knows errors, and redirects to other regions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from botocore.exceptions import BotoCoreError

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_VALID_SECONDS = 900  # longer than any request; clocks may differ by as much for S3
_OBJECT = (200, 206)
_REFUSED = (400, 401, 403)
_HEADERS = {"Range": "Range", "IfMatch": "If-Match"}


class SignedGetRefusedError(Exception):
    """The server refuses the request, or does not know presigned URLs."""


class FoundObject(NamedTuple):
    """An object, or a range of it, whose bytes are still to be read.

    Args:
        body: Has `read(n)`.
        etag: The object's.
        content_range: Which bytes of it come; empty for all.
        close: Ends the request.
    """

    body: Any
    etag: str
    content_range: str
    close: Callable[[], None]


async def signed_get(
    client: Any, names: Mapping[str, str], conditions: Mapping[str, str]
) -> FoundObject | None:
    """Request an object.

    Args:
        client: An S3 client of aiobotocore, prepared by `sign_as_requests`.
        names: Arguments of `get_object` that name the object.
        conditions: Those that need no signature: `Range` and `IfMatch`.

    Returns:
        None if the server sends something else than the object.

    Raises:
        SignedGetRefusedError: The server may answer botocore's own request all the same.
        botocore.exceptions.BotoCoreError: No credentials were found, or the server did not answer.
    """
    url = await client.generate_presigned_url("get_object", Params=names, ExpiresIn=_VALID_SECONDS)
    headers = HTTPHeaders.from_dict({_HEADERS[name]: value for name, value in conditions.items()})
    request = AWSPreparedRequest("GET", url, headers, None, stream_output=True)
    try:
        # As s3fs does, when it looks whether the client's connections are open.
        response = await client._endpoint.http_session.send(request)
    except BotoCoreError as error:
        raise _without_signature(error, url) from None
    answer: ClientResponse = response.raw
    if answer.status not in _OBJECT:
        answer.close()
        if answer.status in _REFUSED:
            raise SignedGetRefusedError
        return None
    etag, content_range = (answer.headers.get(name, "") for name in ("ETag", "Content-Range"))
    return FoundObject(answer.content, etag, content_range, answer.close)


def sign_as_requests(client: Any) -> None:
    """Let a client presign with version 4, as it signs requests; by default it takes version 2."""
    client.meta.events.register_first("choose-signer.s3", _version_4)


def _version_4(signature_version: Any, **_: Any) -> str | None:
    """The signer of presigned URLs of S3; None for the client's own choice."""
    return "s3v4-query" if signature_version in ("s3v4-query", "v4-query") else None


def _without_signature(error: BotoCoreError, url: str) -> BotoCoreError:
    """The error with the address that botocore itself would name."""
    address = url.partition("?")[0]
    told = {name: str(value).replace(url, address) for name, value in error.kwargs.items()}
    return type(error)(**told)
