"""Replaces registered secrets by `***` in texts.

Worker code. Every `StorageOptions` registers its keys here; those in AWS's environment variables
count as well. Access key ids are not secrets to AWS, but nobody needs them in a message either.
"""

from __future__ import annotations

import os
import re
import threading

_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")
_MIN_LENGTH = 6  # a shorter one would be found in the middle of words

_USER = re.compile(r"(?<=://)[^/@\s'\"]+@")
_QUERY = re.compile(
    r"(?i)(?<=[?&])((?:x-amz-(?:signature|credential|security-token)|signature|awsaccesskeyid|sig"
    r"|token|access_key|secret|password)=)[^&\s'\"]+"
)
_NAME = re.compile(r"(?i)pass|secret|token|key|credential|connection_string|auth")
_lock = threading.Lock()
_registered: set[str] = set()


def register(*values: object) -> None:
    """Let those of these values that are texts be replaced in all texts from now on."""
    found = {value for value in values if isinstance(value, str) and len(value) >= _MIN_LENGTH}
    if not found <= _registered:
        with _lock:
            _registered.update(found)


def is_secret_name(name: str) -> bool:
    """Whether an option of this name may hold a secret."""
    return bool(_NAME.search(name))


def redact(text: str) -> str:
    """Return the text without registered secrets and without the credentials of URLs."""
    known = {os.environ.get(name, "") for name in _VARIABLES}
    with _lock:
        known |= _registered
    # The longest first, so that what is left of one never shows another's end.
    for secret in sorted((s for s in known if len(s) >= _MIN_LENGTH), key=len, reverse=True):
        text = text.replace(secret, "***")
    return redact_urls(text)


def redact_urls(text: str) -> str:
    """Return the text with `user:password@` and the signing parameters of URLs replaced."""
    return _QUERY.sub(r"\1***", _USER.sub("***@", text))
