"""s3fs with time-outs, so that every call ends in known time.

Worker code. Three layers could try a request again; here one does, with one deadline for the whole
operation. The loops of botocore and of s3fs are off: neither is bounded in time (a server that is
silent would be waited for 5 x 5 times), they multiply each other, and bodies that are cut short
pass both of them by. Time-outs for a connection and for the next bytes are botocore's; one for
bodies that trickle is here.

What the options leave out is looked up where AWS's own tools look: the environment, the profile,
the shared files.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.handlers import add_expect_header
from fsspec.asyn import sync, sync_wrapper
from s3fs import S3FileSystem

from stagecoach.infra.storage.aws import s3_address
from stagecoach.infra.storage.environment import variables
from stagecoach.infra.storage.object_store import ObjectChangedError
from stagecoach.infra.storage.retries import (
    NoAnswerError,
    ShortBodyError,
    SlowAnswerError,
    is_passing,
    is_precondition_failure,
    retrying,
    wait_seconds,
)
from stagecoach.infra.storage.signed_get import (
    LEAST_BYTES,
    VALID_SECONDS,
    SignedGetRefusedError,
    SignedGets,
    sign_as_requests,
)

if TYPE_CHECKING:
    from stagecoach.infra.storage.object_store import StorageOptions

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_MOST_CONNECTIONS = 32  # the inputs of a task are requested at the same time; botocore's 10 queue

_deadline: ContextVar[float | None] = ContextVar("s3_deadline", default=None)


class BoundedS3FileSystem(S3FileSystem):
    """`S3FileSystem` whose operations are tried again until one deadline.

    Args:
        retry_seconds: After so long an operation fails, whatever it waits for; 0 for one try
            without a deadline.
        timeout_seconds: Within so long the next `LEAST_BYTES` of a body must come.
        environment: Not looked at; instances are shared between equal arguments only, and one that
            was made in another environment has other credentials.
        arguments: Those of `S3FileSystem`.
    """

    retries = 1  # s3fs's own loop

    def __init__(
        self,
        *args: Any,
        retry_seconds: float = 60.0,
        timeout_seconds: float = 15.0,
        environment: int = 0,
        **arguments: Any,
    ) -> None:
        super().__init__(*args, **arguments)
        self._retry_seconds = retry_seconds
        self._timeout_seconds = timeout_seconds
        self.presigns = True  # until a server refuses it
        self._prepared: Any = None
        self._gets: SignedGets | None = None
        self._gets_lock = threading.Lock()

    async def set_session(self, refresh: bool = False, kwargs: Any = None) -> Any:
        """Return the client, which sends bodies at once and presigns as it signs.

        botocore's asks before each body whether it may (`Expect: 100-continue`), which is a round
        trip more. What is written here is small, or in parts.
        """
        client = await super().set_session(refresh, kwargs or {})
        if client is not self._prepared:
            client.meta.events.unregister("before-call.s3", add_expect_header)
            sign_as_requests(client)
            self._prepared = client
        return client

    async def _call_s3(self, method: str, *akwarglist: Any, **kwargs: Any) -> Any:
        call = super()._call_s3
        # The body of a listing is read below us, so there is one bound for the whole answer: to
        # begin, and to end.
        bound = 2 * self._timeout_seconds if method.startswith("list_") else None

        async def once() -> Any:
            async with _patience(bound, method):
                return await call(method, *akwarglist, **kwargs)

        return await self._bounded(once, method)

    call_s3 = sync_wrapper(_call_s3)

    def cat_file(
        self,
        path: str,
        start: int | None = None,
        end: int | None = None,
        if_match: str = "",
        **arguments: Any,
    ) -> bytes:
        """Return an object, or a range of it, in one request, whole or not at all.

        Args:
            path: The object.
            start: The first byte.
            end: The byte after the last.
            if_match: ETag that it must have. The answer's is compared as well, because not every
                server heeds the condition.
            arguments: Further ones of `_cat_file`.

        Raises:
            ObjectChangedError: It has another ETag.
        """
        if start is None or end is None or not 0 <= start < end or arguments:
            content: bytes = sync(
                self.loop,
                self._cat_file,
                path,
                start=start,
                end=end,
                if_match=if_match,
                **arguments,
            )
            return content
        return self._range(path, start, end, if_match, b"".join)

    def read_into(self, path: str, buffer: memoryview, start: int, if_match: str = "") -> int:
        """Read a range of an object into memory.

        Args:
            path: The object.
            buffer: As long as the range.
            start: The first byte.
            if_match: As above.

        Returns:
            How many bytes were read; fewer only where the object ends.

        Raises:
            ObjectChangedError: It has another ETag.
        """

        def fill(pieces: Iterable[bytes]) -> int:
            came = 0
            for piece in pieces:
                buffer[came : came + len(piece)] = piece
                came += len(piece)
            return came

        return self._range(path, start, start + len(buffer), if_match, fill)

    def _range(
        self,
        path: str,
        start: int,
        end: int,
        if_match: str,
        take: Callable[[Iterable[bytes]], _T],
    ) -> _T:
        """What `take` makes of the pieces of a range; after a failure it gets them anew."""
        names = self._names(path)
        deadline = time.monotonic() + (self._retry_seconds or math.inf)

        def signed() -> _T | None:
            pieces = self._signed_gets().pieces(names, start, end, if_match.strip('"'), deadline)
            return None if pieces is None else take(pieces)

        refused = False
        if self.presigns:
            try:
                found = retrying(signed, self._retry_seconds, lambda: f"get_object {path}")
            except SignedGetRefusedError:
                refused = True
            else:
                if found is not None:
                    return found
        content = sync(self.loop, self._cat_file, path, start=start, end=end, if_match=if_match)
        if refused:  # it is a server that knows no presigned URLs
            self.presigns = False
        return take([content])

    def _signed_gets(self) -> SignedGets:
        """Those of the client, which s3fs may replace.

        Raises:
            RuntimeError: The process was forked, and its connections are those of another one.
        """
        loop = self.loop
        with self._gets_lock:
            if self._gets is None or self._gets.client is not self._prepared:
                client = sync(loop, self.set_session)
                ca_bundle = self.session.get_config_variable("ca_bundle")

                def presign(names: Mapping[str, str]) -> str:
                    url: str = sync(
                        loop,
                        client.generate_presigned_url,
                        "get_object",
                        Params=names,
                        ExpiresIn=VALID_SECONDS,
                    )
                    return url

                self._gets = SignedGets(client, ca_bundle, presign, self._timeout_seconds)
            return self._gets

    def _names(self, path: str, version_id: str | None = None) -> dict[str, str]:
        """Arguments of `get_object` that name an object."""
        bucket, key, version = self.split_path(path)
        names = {"Bucket": bucket, "Key": key}
        if version_id or version:
            names["VersionId"] = str(version_id or version)
        return names

    async def _cat_file(
        self,
        path: str,
        version_id: str | None = None,
        start: int | None = None,
        end: int | None = None,
        if_match: str = "",
        **_: Any,
    ) -> bytes:
        """Return what `cat_file` does, by botocore's own request."""
        conditions = {}
        if if_match:
            conditions["IfMatch"] = f'"{if_match.strip(chr(34))}"'
        ranged = start is not None or end is not None
        if ranged:
            conditions["Range"] = await self._process_limits(path, start, end)

        async def fetch() -> bytes:
            found = await self._call_s3("get_object", **self._names(path, version_id), **conditions)
            body, etag = found["Body"], str(found.get("ETag") or "")
            try:
                if if_match and etag and etag.strip('"') != if_match.strip('"'):
                    raise ObjectChangedError(_changed(path))
                content = await self._read_body(body)
            finally:
                body.close()
            described = str(found.get("ContentRange") or "")
            return _checked(content, described, start, end) if ranged else content

        try:
            return await self._bounded(fetch, "get_object")
        except Exception as error:
            if if_match and is_precondition_failure(error):
                raise ObjectChangedError(_changed(path)) from None
            raise

    async def _head_object(self, path: str) -> dict[str, Any]:
        """Return what the server says of an object.

        Raises:
            FileNotFoundError: There is none.
        """
        bucket, key, _ = self.split_path(path)
        found: dict[str, Any] = await self._call_s3("head_object", Bucket=bucket, Key=key)
        return found

    head_object = sync_wrapper(_head_object)

    async def _read_body(self, body: Any) -> bytes:
        """Return a whole body, however long it takes while enough of it comes.

        Raises:
            SlowAnswerError: Too little came within the time-out.
        """
        clock = asyncio.get_running_loop().time
        pieces: list[bytes] = []
        came = 0
        async with _patience(self._timeout_seconds, "get_object") as bound:
            while piece := await body.read(LEAST_BYTES):
                pieces.append(piece)
                came += len(piece)
                if came >= LEAST_BYTES:
                    came = 0
                    bound.reschedule(clock() + self._timeout_seconds)
        return b"".join(pieces)

    async def _bounded(self, call: Callable[[], Awaitable[_T]], name: str) -> _T:
        """Try until the deadline, which calls inside this one share."""
        await self.set_session()  # reads AWS's own files, and models that are large
        if not self._retry_seconds:
            return await call()
        clock = asyncio.get_running_loop().time
        outer = _deadline.get()
        deadline = clock() + self._retry_seconds if outer is None else outer
        token = _deadline.set(deadline)
        attempt = 0
        failure: BaseException | None = None
        try:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        return await call()
                except Exception as error:
                    if clock() >= deadline:
                        raise failure or NoAnswerError(name) from None
                    wait = wait_seconds(attempt)
                    if not is_passing(error) or clock() + wait >= deadline:
                        raise
                    failure = error
                attempt += 1
                logger.info("try %d of %s failed (%s)", attempt, name, type(failure).__name__)
                await asyncio.sleep(wait)
        finally:
            _deadline.reset(token)


@asynccontextmanager
async def _patience(seconds: float | None, name: str) -> AsyncIterator[asyncio.Timeout]:
    """A time-out for one try, whose error has the name of the request; None for no bound.

    Raises:
        SlowAnswerError: The time is over.
    """
    try:
        async with asyncio.timeout(seconds) as bound:
            yield bound
    except TimeoutError:
        if bound.expired():
            raise SlowAnswerError(name) from None
        raise


def s3_filesystem(options: StorageOptions) -> BoundedS3FileSystem:
    """The file system that the options and AWS's own configuration describe.

    Raises:
        StorageError: The profile does not exist.
    """
    address = s3_address(options)
    config: dict[str, Any] = {
        "retries": {"mode": "standard", "total_max_attempts": 1},
        "connect_timeout": options.timeout_seconds,
        "read_timeout": options.timeout_seconds,
        "max_pool_connections": _MOST_CONNECTIONS,
        # Servers other than Amazon's often refuse the newer default checksums; our files carry
        # their own.
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    if address.path_style is not None:
        config["s3"] = {"addressing_style": "path" if address.path_style else "auto"}
    return BoundedS3FileSystem(
        endpoint_url=address.endpoint,
        key=options.access_key,
        secret=options.secret_key,
        token=options.session_token,
        retry_seconds=options.retry_seconds,
        timeout_seconds=options.timeout_seconds,
        environment=hash(tuple(sorted(variables("AWS_").items()))),
        config_kwargs=config,
        client_kwargs={"region_name": options.region} if options.region else {},
        use_listings_cache=False,
        default_fill_cache=False,
        **({"profile": options.profile} if options.profile else {}),
    )


def _changed(path: str) -> str:
    return f"s3://{path.removeprefix('s3://')} was replaced by another object while it was read"


def _checked(content: bytes, described: str, start: int | None, end: int | None) -> bytes:
    """The range out of an answer, if it is whole; `described` is bytes <first>-<last>/<size>."""
    if not described:  # a server that ignores ranges sends the object
        return content[start:end]
    total = described.rpartition("/")[2]
    if total.isdigit():
        first = max(start or 0, 0)
        expected = min(int(total), end if end is not None and end >= 0 else int(total)) - first
        if len(content) < expected:
            raise ShortBodyError(f"{len(content)} of {expected} bytes came")
    return content
