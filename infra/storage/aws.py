"""Where S3 is and how it is reached: the storage options, and AWS's own configuration behind them.

s3fs and libraries with a client of their own, such as those of table formats, get the same answers.

Worker code.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import botocore.exceptions
import botocore.session
from botocore.configprovider import ConfiguredEndpointProvider

from stagecoach.infra.errors import StorageError, StorageRefusedError
from stagecoach.infra.storage import secrets
from stagecoach.infra.storage.secrets import redact_urls

if TYPE_CHECKING:
    from stagecoach.infra.storage.object_store import StorageOptions

# What `_shared_configuration` depends on: a change of any of them (in tests, above all) counts.
_VARIABLES = (
    "AWS_CONFIG_FILE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "HOME",
)


@dataclass(frozen=True)
class S3Address:
    """How S3 is addressed.

    Args:
        endpoint: Its URL; None for Amazon's own.
        path_style: Whether buckets are in paths rather than in host names; None where AWS's
            defaults decide.
    """

    endpoint: str | None
    path_style: bool | None


@dataclass(frozen=True)
class S3Credentials:
    """Who asks S3; without keys, nobody in particular.

    Args:
        region: The region.
        access_key: Its id.
        secret_key: Never shown.
        session_token: Never shown.
    """

    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)


def s3_address(options: StorageOptions) -> S3Address:
    """Return where S3 is by the options and AWS's own configuration.

    Raises:
        StorageError: The profile does not exist, or the endpoint has credentials in it.
    """
    endpoint, addressing = _shared_configuration(
        options.profile,
        tuple(os.environ.get(name, "") for name in _VARIABLES),
    )
    endpoint = options.endpoint_url or endpoint
    if endpoint and "@" in endpoint.partition("://")[2].partition("/")[0]:
        raise StorageRefusedError(
            f"the S3 endpoint {redact_urls(endpoint)} has credentials in it, which are none of "
            "S3's; give access_key and secret_key"
        )
    path_style = options.path_style
    if path_style is None and addressing is None and endpoint:
        # Servers other than Amazon's rarely have a host name for each bucket.
        path_style = True
    return S3Address(endpoint, path_style)


def s3_credentials(options: StorageOptions) -> S3Credentials:
    """Return the credentials of the options, or those of AWS's own chain at this time.

    Raises:
        StorageError: The profile does not exist.
    """
    session = _session(options.profile)
    region = options.region or session.get_config_variable("region")
    if options.access_key:
        return S3Credentials(region, options.access_key, options.secret_key, options.session_token)
    try:
        found = session.get_credentials()
        frozen = None if found is None else found.get_frozen_credentials()
    except botocore.exceptions.BotoCoreError as error:
        raise StorageError(f"no credentials for S3: {secrets.redact(str(error))}") from None
    if frozen is None:
        return S3Credentials(region)
    secrets.register(frozen.access_key, frozen.secret_key, frozen.token)
    return S3Credentials(region, frozen.access_key, frozen.secret_key, frozen.token)


@functools.lru_cache(maxsize=64)
def _shared_configuration(
    profile: str | None, variables: tuple[str, ...]
) -> tuple[str | None, str | None]:
    """The endpoint and the addressing style of S3 as environment and shared files have them."""
    session = _session(profile)
    scoped = session.get_scoped_config()
    endpoint: str | None = None
    if not session.get_config_variable("ignore_configured_endpoint_urls"):
        endpoint = ConfiguredEndpointProvider(
            full_config=session.full_config, scoped_config=scoped, client_name="s3"
        ).provide()
    nested = scoped.get("s3")
    addressing = nested.get("addressing_style") if isinstance(nested, dict) else None
    return endpoint, addressing


def _session(profile: str | None) -> botocore.session.Session:
    """A session whose configuration can be read."""
    session = botocore.session.Session(profile=profile)
    try:
        session.get_scoped_config()
    except botocore.exceptions.ProfileNotFound as error:
        raise StorageError(
            f"{error}; correct AWS_PROFILE (or the storage option `profile`), or add the profile "
            "to ~/.aws/config"
        ) from None
    except botocore.exceptions.ConfigParseError as error:
        raise StorageError(f"cannot read the AWS configuration: {error}") from None
    return session
