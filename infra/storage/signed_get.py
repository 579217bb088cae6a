"""Ranges of objects in S3 for two thirds of the processor time of botocore's own requests.

Worker code. botocore takes most of a millisecond to build a request and to parse its answer, and an
event loop hands each piece of a body on through several copies. That is more than a server needs to
send the range. Here botocore signs a URL for each object, and no more: the thread that wants a
range asks for it over connections that are botocore's, too, so proxies, certificates and time-outs
are those of all requests, and the bytes go from the socket to where they are wanted. An answer that
is not the range is left to botocore: it knows errors, and redirects to other regions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from ssl import SSLContext
from typing import Any, ClassVar
from weakref import WeakSet

from botocore.awsrequest import AWSPreparedRequest
from botocore.endpoint import EndpointCreator
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as BodyTimeoutError

from stagecoach.infra.storage.retries import NoAnswerError, ShortBodyError, SlowAnswerError

LEAST_BYTES = 256 << 10
"""That must come of a body, or its rest, within the time-out. A bound for the whole body would
depend on its size and on the line."""

VALID_SECONDS = 900
"""How long a URL is valid; clocks may differ by as much for S3."""

_KEPT_SECONDS = 300  # that a URL is used; temporary credentials are renewed earlier than that
_KEPT_URLS = 4096
_OBJECT = (200, 206)
_REFUSED = (400, 401, 403)
_PIECE_BYTES = 1 << 20

_NAME = "get_object"


class SignedGetRefusedError(Exception):
    """The server refuses the request, or does not know presigned URLs."""


class _Connections(URLLib3Session):
    """botocore's, with the certificates of authorities read once: they take 16 ms a connection."""

    _lock = threading.Lock()
    _ready: ClassVar[WeakSet[SSLContext]] = WeakSet()

    def _setup_ssl_cert(self, conn: Any, url: str, verify: Any) -> None:
        super()._setup_ssl_cert(conn, url, verify)
        context = getattr(conn, "conn_kw", {}).get("ssl_context")  # that of all connections
        if context is None or not conn.ca_certs:
            return
        with self._lock:
            if context not in self._ready:
                context.load_verify_locations(conn.ca_certs)
                self._ready.add(context)
        conn.ca_certs = None


class SignedGets:
    """Requests for ranges, from any thread.

    Args:
        client: An S3 client of botocore or aiobotocore.
        ca_bundle: Certificates of authorities, as botocore's configuration names them.
        presign: Returns the URL of an object, given the arguments of `get_object` that name it.
        timeout_seconds: Within so long an answer must begin, and the next 256 KiB of it come.
    """

    def __init__(
        self,
        client: Any,
        ca_bundle: str | None,
        presign: Callable[[Mapping[str, str]], str],
        timeout_seconds: float,
    ) -> None:
        config = client.meta.config
        endpoint = EndpointCreator(client.meta.events).create_endpoint(
            client.meta.service_model,
            region_name=client.meta.region_name,
            endpoint_url=client.meta.endpoint_url,
            verify=ca_bundle,
            http_session_cls=_Connections,
            timeout=(config.connect_timeout, config.read_timeout),
            max_pool_connections=config.max_pool_connections,
            proxies=config.proxies,
            client_cert=config.client_cert,
            proxies_config=config.proxies_config,
        )
        self.client = client
        self._http = endpoint.http_session
        self._presign = presign
        self._timeout_seconds = timeout_seconds
        self._url = lru_cache(_KEPT_URLS)(self._signed)

    def pieces(
        self, names: Mapping[str, str], start: int, end: int, etag: str, deadline: float
    ) -> Iterator[bytes] | None:
        """Request a range of an object.

        Args:
            names: Arguments of `get_object` that name the object.
            start: The first byte.
            end: The byte after the last; the object may end before.
            etag: Which the object must have; empty for any.
            deadline: When to stop waiting, by `time.monotonic`.

        Returns:
            The bytes as they come, or None if the server sends something else than the range.

        Raises:
            SignedGetRefusedError: The server may answer botocore's own request all the same.
            botocore.exceptions.BotoCoreError: No credentials were found, or the server did not
                answer.
        """
        slot = int(time.time() // _KEPT_SECONDS)  # goes on while a machine sleeps
        url = self._url(slot, *names.items())
        headers = {"Range": f"bytes={start}-{end - 1}"}
        if etag:
            headers["If-Match"] = f'"{etag}"'
        request = AWSPreparedRequest("GET", url, headers, None, stream_output=True)
        left = max(deadline - time.monotonic(), 0.001)
        request.context = {"read_timeout": min(self._timeout_seconds, left)}
        try:
            answer = self._http.send(request)
        except BotoCoreError as error:
            raise _without_signature(error, url) from None
        described = answer.headers.get("Content-Range", "")
        total = described.rpartition("/")[2]
        found = answer.headers.get("ETag", "").strip('"')
        is_range = described.startswith(f"bytes {start}-") and total.isdigit()
        is_wanted = answer.status_code in _OBJECT and is_range
        if not is_wanted or (etag and found and found != etag):
            answer.raw.close()
            if answer.status_code in _REFUSED:
                raise SignedGetRefusedError
            return None
        return self._body(answer.raw, min(end, int(total)) - start, deadline)

    def _body(self, raw: Any, num_bytes: int, deadline: float) -> Iterator[bytes]:
        """Yield a whole body, however long it takes while enough of it comes.

        Raises:
            ShortBodyError: It has another length.
            SlowAnswerError: Too little came within the time-out.
            NoAnswerError: The deadline has passed.
        """
        clock = time.monotonic
        bound = clock() + self._timeout_seconds
        came = since = 0
        with closing(raw):
            while piece := _read(raw):
                came += len(piece)
                since += len(piece)
                if came > num_bytes:
                    break
                yield piece
                now = clock()
                if since >= LEAST_BYTES:
                    since = 0
                    bound = now + self._timeout_seconds
                elif now > bound and came < num_bytes:
                    raise SlowAnswerError(_NAME)
                if now > deadline and came < num_bytes:
                    raise NoAnswerError(_NAME)
        if came != num_bytes:
            raise ShortBodyError(f"{came} of {num_bytes} bytes came")

    def _signed(self, _slot: int, *names: tuple[str, str]) -> str:
        """The URL of an object; one for each slot of time."""
        return self._presign(dict(names))


def _read(raw: Any) -> bytes:
    """The next piece of a body.

    Raises:
        SlowAnswerError: None came within the time-out.
        ShortBodyError: The connection is gone.
    """
    try:
        piece: bytes = raw.read1(_PIECE_BYTES)
    except BodyTimeoutError:
        raise SlowAnswerError(_NAME) from None
    except HTTPError as error:
        raise ShortBodyError(str(error)) from None
    return piece


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
