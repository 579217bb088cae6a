"""Finds the driver's own credentials for S3, to be sent to tasks (`credentials: forward`).

Temporary credentials are renewed by botocore when they are about to expire, so what is found here
at the start of a job is valid for another ten minutes at least, where their source gives them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stagecoach.infra.errors import CredentialsError
from stagecoach.infra.storage.environment import variables
from stagecoach.infra.storage.object_store import (
    S3_SCHEMES,
    StorageOptions,
    redact_url,
)
from stagecoach.infra.storage.secrets import redact

FORWARD = "forward"
_MARK = "credentials"
_LOCAL_SCHEMES = ("", "file", "local")


def marked(values: Mapping[str, Any], credentials: str) -> dict[str, Any]:
    """Return a store as plain data that says whether the driver's credentials go with it.

    Args:
        values: The store as `ObjectStore.to_dict` describes it.
        credentials: The setting of that name.
    """
    return {**values, _MARK: FORWARD} if credentials == FORWARD else dict(values)


def is_forwarded(values: Mapping[str, Any]) -> bool:
    """Whether the driver's own credentials go with the store."""
    return values.get(_MARK) == FORWARD


def completed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a store as tasks need it, with the driver's credentials where it says so.

    Args:
        values: The store as `marked` describes it.

    Raises:
        CredentialsError: The driver has none, or none that can be sent.
    """
    if not is_forwarded(values):
        return dict(values)
    url = str(values["url"])
    scheme = url.partition("://")[0] if "://" in url else ""
    options = StorageOptions.from_dict(values.get("options", {}))
    if scheme not in (*S3_SCHEMES, *_LOCAL_SCHEMES):
        if options.filesystem_options is None and redact_url(url) == url:
            raise CredentialsError(
                f"cannot forward the credentials of {scheme}://: only those of S3 are found by "
                "themselves; put them into the storage option filesystem_options, or set "
                "`credentials: executor` and give each machine its own"
            )
        return dict(values)
    found = _with_own(options, required=scheme in S3_SCHEMES)
    return dict(values) if found == options else {**values, "options": found.to_dict()}


def _with_own(options: StorageOptions, *, required: bool) -> StorageOptions:
    """The options with all that this process would look up itself.

    Args:
        options: What the settings say.
        required: Whether the storage root is on S3; else tables may be.
    """
    if options.access_key and options.secret_key:
        return options
    import botocore.exceptions

    from stagecoach.infra.storage.aws import s3_address

    address = s3_address(options)
    try:
        source, region = _source(options.profile, _environment())
        frozen = None if source is None else source.get_frozen_credentials()
    except botocore.exceptions.BotoCoreError as error:
        text = redact(f"{type(error).__name__}: {error}")
        raise CredentialsError(f"the driver's credentials cannot be forwarded: {text}") from None
    if frozen is None or not frozen.access_key:
        if required:
            raise CredentialsError(
                "there are no credentials to forward: this machine, the driver's, has none; set "
                "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the storage "
                "options"
            )
        return options
    return replace(
        options,
        access_key=frozen.access_key,
        secret_key=frozen.secret_key,
        session_token=frozen.token,
        endpoint_url=address.endpoint,
        path_style=address.path_style,
        region=options.region or region,
        profile=None,  # a name in files of this machine
    )


@functools.lru_cache(maxsize=16)
def _source(profile: str | None, environment: tuple[tuple[str, str], ...]) -> tuple[Any, Any]:
    """Where this process gets its credentials from, which renews them, and its region."""
    del environment  # another one may have others
    import botocore.session

    session = botocore.session.Session(profile=profile)
    return session.get_credentials(), session.get_config_variable("region")


def _environment() -> tuple[tuple[str, str], ...]:
    found = variables("AWS_", "HOME")
    return tuple(sorted(i for i in found.items() if i[0].startswith("AWS_") or i[0] == "HOME"))
