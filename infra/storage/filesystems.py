"""The file system behind a URL, which threads may use.

Worker code. What a file system needs (host, user, organisation, token) is in the URL, in the
storage option `filesystem_options`, or in fsspec's own configuration. S3 has a module of its own.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import fsspec
from fsspec.config import apply_config

from stagecoach.infra.errors import StorageRefusedError
from stagecoach.infra.storage import secrets
from stagecoach.infra.storage.object_store import S3_SCHEMES, StorageOptions, redact_url

# Where a folder is no more than the beginning of names, so that none need be made before a write.
_WITHOUT_FOLDERS = frozenset(
    (
        *S3_SCHEMES,
        *("abfs", "abfss", "az", "gcs", "gs", "http", "https", "memory", "oci", "oss", "tos"),
    )
)


def is_chained(url: str) -> bool:
    """Whether a text is one of fsspec's chains, such as `simplecache::s3://bucket`."""
    first, chain, rest = url.partition("::")
    # The address of an IPv6 host has `::`, too.
    return bool(chain) and (first in fsspec.available_protocols() or "://" in rest)


class FileSystems:
    """The file system of a URL, opened when it is first asked for.

    One that is not asynchronous may have a single connection, so each thread has its own.

    Args:
        url: `scheme://…`, not chained.
        options: How to reach it.

    Raises:
        StorageRefusedError: The scheme is unknown, its package is not installed, or the URL does
            not say all that the file system needs.
    """

    def __init__(self, url: str, options: StorageOptions) -> None:
        self.scheme = url.partition("://")[0]
        self._class = _class_of(url, self.scheme)
        self._of_thread = threading.local()
        self._shared: Any = None
        if self.scheme in S3_SCHEMES:
            from stagecoach.infra.storage.s3 import s3_filesystem

            self._shared = s3_filesystem(options)
            self.root = str(self._class._strip_protocol(url)).rstrip("/")
        else:
            self.root, self._arguments = _parts(url, self._class, options)
            _check_arguments(url, self._class, self._arguments)
        self.prefix = f"{self.root}/" if self.root else str(self._class.root_marker)

    @property
    def has_folders(self) -> bool:
        """Whether a folder must be there before something is written into it."""
        return self.scheme not in _WITHOUT_FOLDERS

    def get(self) -> Any:
        """Return the file system; opening it may fail in whatever way it fails."""
        if self._shared is not None:
            return self._shared
        if self._class.async_impl:
            return self._class(**self._arguments)  # fsspec has one for equal arguments
        found = getattr(self._of_thread, "found", None)
        if found is None:
            found = self._of_thread.found = self._class(**self._arguments, skip_instance_cache=True)
        return found

    def forget(self) -> None:
        """Let the next `get` of this thread connect anew."""
        self._of_thread.found = None


def _class_of(url: str, scheme: str) -> type[Any]:
    if scheme == "ftp":  # fsspec's own reads of ranges hang with some servers
        raise StorageRefusedError(
            f"cannot open {redact_url(url)}: FTP is not supported; use sftp:// (pip package "
            "paramiko), s3://, or a local folder"
        )
    try:
        found: type[Any] = fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        raise StorageRefusedError(
            f"cannot open {redact_url(url)}: the driver of {scheme}:// is not installed "
            f"({error if error.args[0] else error.__cause__}); install it for every task, too"
        ) from error
    except ValueError as error:
        raise StorageRefusedError(
            f"cannot open {redact_url(url)}: no file system for scheme {scheme!r}; use a local "
            "folder, s3://, or a scheme that fsspec knows"
        ) from error
    return found


def _parts(url: str, cls: type[Any], options: StorageOptions) -> tuple[str, dict[str, Any]]:
    """The path of the root, and what the file system is made with."""
    try:
        root = str(cls._strip_protocol(url)).rstrip("/")
        found: dict[str, Any] = dict(cls._get_kwargs_from_urls(url))
    except (KeyError, ValueError) as error:
        raise StorageRefusedError(
            f"cannot open {redact_url(url)}: it is not what a URL of its kind "
            f"looks like ({type(error).__name__}: {options.redact(str(error))})"
        ) from None
    for name in found.keys() & {"user", "username", "password"}:
        found[name] = unquote(found[name])
    secrets.register(found.get("password"))
    if "timeout" in inspect.signature(cls.__init__).parameters:
        found["timeout"] = options.timeout_seconds
    return root, {**found, **(options.filesystem_options or {})}


def _check_arguments(url: str, cls: type[Any], arguments: Mapping[str, Any]) -> None:
    given = apply_config(cls, dict(arguments))
    try:
        inspect.signature(cls.__init__).bind(None, **given)
    except TypeError as error:
        raise StorageRefusedError(
            f"cannot open {redact_url(url)}: its file system says: {error}; name it in the "
            "URL or in the storage option filesystem_options"
        ) from None
