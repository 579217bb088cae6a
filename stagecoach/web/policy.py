"""Which requests the web servers accept: host names, origins and the shared token.

The check of `Host` ends DNS rebinding: a foreign name that an attacker points at 127.0.0.1 makes
the browser treat our server as part of the attacker's site, but the browser still sends that name.
The check of `Origin` ends requests that pages of other sites, and of other ports, have a browser
send.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

from stagecoach.planner.errors import StagecoachError
from stagecoach.web.token import SharedToken

POLICY_VARIABLE = "STAGECOACH_WEB_POLICY"
"""The policy as JSON, in the environment of the servers alone: it holds the token."""

EVERY_ADDRESS = ("0.0.0.0", "::")
"""What a server listens on to be reached by all addresses of its machine."""

ANY_HOST = "*"
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", re.ASCII)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class WebPolicyError(StagecoachError):
    """A host or origin to allow cannot be understood, or would leave a server open."""


@dataclass(frozen=True)
class Authority:
    """Host and port of an address.

    Args:
        name: The host in lower case; an IPv6 address without brackets, in its short form.
        port: The port, or None for the default one of the scheme.
    """

    name: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> Authority | None:
        """The authority that a header has; None if the text is not one."""
        found = _AUTHORITY.fullmatch(text)
        if found is None:
            return None
        name, port = found[1].lower(), int(found[2]) if found[2] else None
        if name.startswith("["):
            try:
                name = ipaddress.IPv6Address(name[1:-1]).compressed
            except ValueError:
                return None
        return cls(name, port)

    @property
    def is_loopback(self) -> bool:
        """Whether the name always means this machine."""
        return is_loopback(self.name)


@dataclass(frozen=True)
class Origin:
    """Where a page comes from, as browsers tell it.

    Args:
        scheme: `http` or `https`.
        name: The host, as in `Authority`.
        port: The port; the default one of the scheme is filled in.
    """

    scheme: str
    name: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Origin | None:
        """The origin that a header has; None for `null` and whatever else is not of the web."""
        scheme, separator, rest = text.partition("://")
        authority = Authority.parse(rest)
        if not separator or scheme not in _DEFAULT_PORTS or authority is None:
            return None
        return cls(scheme, authority.name, authority.port or _DEFAULT_PORTS[scheme])

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{self.scheme}://{name}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class WebPolicy:
    """What a server accepts.

    Args:
        hosts: Names in `Host` that are accepted besides loopback names; `*` for any.
        origins: Origins that are accepted besides that of the server itself.
        token: Required of every request, if there is one.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[Origin] = frozenset()
    token: SharedToken | None = None

    def __post_init__(self) -> None:
        if ANY_HOST in self.hosts and self.token is None:
            raise WebPolicyError(
                "--allow-host '*' needs a token: without one, any website could have a browser "
                "read and change everything by DNS rebinding; set STAGECOACH_UI_TOKEN or name the "
                "hosts"
            )

    def allows_host(self, host: Authority) -> bool:
        """Whether requests to a server of this name are answered. The port does not matter."""
        return host.is_loopback or not self.hosts.isdisjoint((host.name, ANY_HOST))

    def allows_origin(self, origin: Origin, host: Authority, *, is_secure: bool) -> bool:
        """Whether pages of an origin may send requests.

        Args:
            origin: The origin of the page.
            host: The host that the request is for. A page of the same host and port is our own.
            is_secure: Whether the request came by HTTPS. A proxy may have decrypted it before, so
                an HTTPS origin is accepted in any case.
        """
        if origin in self.origins:
            return True
        port = host.port or _DEFAULT_PORTS[origin.scheme]
        is_same = (origin.name, origin.port) == (host.name, port)
        return is_same and (origin.scheme == "https" or not is_secure)

    def to_environment(self) -> dict[str, str]:
        """The variable from which `take_policy` makes the same policy in another process."""
        values: dict[str, Any] = {
            "hosts": sorted(self.hosts),
            "origins": sorted(map(str, self.origins)),
            "token": self.token and self.token.text,
        }
        return {POLICY_VARIABLE: json.dumps(values)}


def is_loopback(name: str) -> bool:
    """Whether a name or address is one of this machine that no other machine reaches."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def make_policy(
    listening: str,
    *,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    token: str | None = None,
) -> WebPolicy:
    """The policy of a server.

    Args:
        listening: The address that it listens on, whose name is accepted. Where that is every
            address, the machine's own name is, because links to the pages of runs have it.
        hosts: Further names to accept, or `*`.
        origins: Further origins to accept.
        token: The shared token, if requests need one.

    Raises:
        WebPolicyError: A host or an origin is not a valid one.
        TokenError: The token is not a good one.
    """
    own = socket.gethostname() if listening in EVERY_ADDRESS else listening
    names = {_host(own if ":" not in own else f"[{own}]"), *map(_host, hosts)}
    return WebPolicy(
        hosts=frozenset(names),
        origins=frozenset(map(_origin, origins)),
        token=None if token is None else SharedToken(token),
    )


def take_policy(environment: MutableMapping[str, str]) -> WebPolicy:
    """The policy that the environment holds, removed from it: child processes need not have it.

    Raises:
        WebPolicyError: There is none. A server never starts without one.
    """
    text = environment.pop(POLICY_VARIABLE, None)
    if text is None:
        raise WebPolicyError(f"{POLICY_VARIABLE} is not set; start this server with: stagecoach ui")
    values = json.loads(text)
    return WebPolicy(
        hosts=frozenset(values["hosts"]),
        origins=frozenset(map(_origin, values["origins"])),
        token=None if values["token"] is None else SharedToken(values["token"]),
    )


def _host(text: str) -> str:
    if text == ANY_HOST:
        return text
    if ":" in text and not text.startswith("["):
        try:
            return ipaddress.IPv6Address(text).compressed
        except ValueError:
            pass  # a name with a port, which the message below is about
    authority = Authority.parse(text)
    if authority is None or authority.port is not None:
        raise WebPolicyError(
            f"{text!r} is not a valid host to allow; give a name or an IP address without scheme "
            "and port, such as dagster.example.com"
        )
    return authority.name


def _origin(text: str) -> Origin:
    origin = Origin.parse(text.lower().removesuffix("/"))
    if origin is None:
        raise WebPolicyError(
            f"{text!r} is not a valid origin to allow; give scheme and host, and the port if it is "
            "not the default one, such as https://dagster.example.com"
        )
    return origin
