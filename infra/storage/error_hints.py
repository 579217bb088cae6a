"""What a failed request to remote storage means, and what to do about it.

Worker code.
"""

from __future__ import annotations

from stagecoach.infra.errors import CredentialsError, StorageError, StorageRefusedError
from stagecoach.infra.storage.object_store import (
    ObjectMissingError,
    StorageOptions,
    explain_os_error,
)
from stagecoach.infra.storage.retries import answer_of, causes, is_passing

_MISSING_CODES = ("404", "NoSuchKey", "NoSuchUpload", "NotFound")
_REFUSED = {
    "NoSuchBucket": "the bucket does not exist; create it, or correct the storage root",
    "AccessDenied": "access denied; grant this user the bucket, or use other credentials",
    "403": "access denied; grant this user the bucket, or use other credentials",
    "Forbidden": "access denied; grant this user the bucket, or use other credentials",
    "InvalidAccessKeyId": "the server does not know the access key; correct the credentials",
    "SignatureDoesNotMatch": "the secret key is wrong; correct the credentials",
    "ExpiredToken": "the session token has expired; get a new one",
    "InvalidToken": "the session token is not valid; get a new one",
    "RequestTimeTooSkewed": "the clock of this machine is too far from the server's; set it",
    "PermanentRedirect": "the bucket is in another region; set the region",
    "AuthorizationHeaderMalformed": "the bucket is in another region; set the region",
}
_CREDENTIAL_CODES = frozenset(
    ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken")
)
_REFUSED_CLASSES = {
    "NoCredentialsError": "there are no credentials; set AWS_PROFILE, or the variables "
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the storage options",
    "PartialCredentialsError": "half of the credentials are missing; set both keys",
    "CredentialRetrievalError": "AWS's own tools give no credentials; see `aws sts "
    "get-caller-identity`",
}
_MISSING_CREDENTIALS = frozenset(_REFUSED_CLASSES.values())


def explain_failure(
    action: str, uri: str, error: BaseException, options: StorageOptions
) -> StorageError:
    """The error to raise for a failed action on an object, without secrets.

    Args:
        action: What was tried: `read`, `write`, ….
        uri: The object, without credentials.
        error: What the file system raised.
        options: How the store was reached.

    Returns:
        An `ObjectMissingError`, a `StorageRefusedError` (a retry cannot help; `CredentialsError`
        where they are missing, wrong or expired) or a `StorageError`.
    """
    code, status = answer_of(error)
    advice = _REFUSED.get(code) or next(
        (text for cause in causes(error) if (text := _REFUSED_CLASSES.get(type(cause).__name__))),
        None,
    )
    if advice is None and status == 403 and code not in _MISSING_CODES:
        advice = _REFUSED["403"]
    if advice is not None:
        text = f"cannot {action} {uri}: {advice}"
        text = options.redact(f"{text} ({code})" if code else text)
        if code in _CREDENTIAL_CODES or (code not in _REFUSED and advice in _MISSING_CREDENTIALS):
            return CredentialsError(text)
        return StorageRefusedError(text)
    if isinstance(error, NotImplementedError):
        return StorageRefusedError(f"cannot {action} {uri}: its file system cannot do that")
    explained = explain_os_error(action, uri, error)
    if isinstance(explained, ObjectMissingError):
        return ObjectMissingError(options.redact(str(explained)))
    if code and status:
        explained = StorageError(f"cannot {action} {uri}: the server answers {status} {code}")
    text = options.redact(str(explained))
    if is_passing(error) and options.retry_seconds:
        text += f"; tried for up to {options.retry_seconds:g} s"
    return StorageError(text)
