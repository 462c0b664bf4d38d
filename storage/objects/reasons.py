"""Explain why a bucket cannot be used, for reasons that a person can correct, by a sign in obstore's error."""

from __future__ import annotations

from storage.objects.variables import PREFIXES, scheme_of

TOO_MANY = "the server has too many requests"
REASONS = {
    "<Code>NoSuchBucket<": "there is no such bucket",
    "<Code>ContainerNotFound<": "there is no such container",
    "<Code>InvalidResourceName<": "that is no name of a container",
    "<Code>OutOfRangeInput<": "that is no name of a container",
    "<Code>RequestTimeTooSkewed<": "the clock of this machine is wrong",
    "<Code>InvalidAccessKeyId<": "the server does not know these credentials",
    "<Code>SignatureDoesNotMatch<": "the secret key is not that of these credentials",
    "<Code>AuthenticationFailed<": "the key has expired or is not that of this account, or the clock of this machine is wrong",
    "<Code>AuthenticationRequired<": "the server does not know these credentials",
    "<Code>InvalidAuthenticationInfo<": "the server does not know these credentials",
    "<Code>AccessDenied<": "no right to it",
    "source: DeleteFailed": "no right to delete in it",
    "<Code>AccountIsDisabled<": "the account is disabled",
    "<Code>ExpiredToken<": "the credentials have expired",
    "<Code>AuthorizationHeaderMalformed<": "the bucket is in another region than AWS_REGION says",
    "<Code>Authorization": "no right to it, or the key has expired or is not that of this account",
    "<Code>PermanentRedirect<": "the bucket is in another region than AWS_REGION says",
    "<Code>SlowDown<": TOO_MANY,
    "429 Too Many Requests": TOO_MANY,
    "source: BadScheme": "an address of http needs {prefix}ALLOW_HTTP=true",
    "<Code>NotImplemented<": "the server does not know this request, which may be a conditional put",
    "http://169.254.169.254/": "there are no credentials in the environment",
    "kind: Timeout": "does not answer in time",
    "kind: Connect": "cannot be reached",
    "source: OpenCredentials": "the file of the credentials cannot be opened",
    "source: DecodeCredentials": "the credentials are no JSON of a service account or a user",
    "source: ReadPem": "the private key of the credentials is none",
    "source: ServiceAccountPathAndKeyProvided": "GOOGLE_SERVICE_ACCOUNT and GOOGLE_SERVICE_ACCOUNT_KEY are both set",
    "source: MissingAccount": "AZURE_STORAGE_ACCOUNT_NAME is not set",
    "source: InvalidAccessKey": "the account's key is no Base64",
    "source: MissingSasComponent": "the SAS key is none",
}
"""The address is where a machine of Amazon's, Google's or Azure's would find credentials."""


def reason_of(fault: BaseException, address: str) -> str | None:
    """Return the reason in an error of obstore, or in the server's answer in it; None of anything that is not known here."""
    text, prefix = str(fault), PREFIXES.get(scheme_of(address), "")
    return next((reason.format(prefix=prefix) for sign, reason in REASONS.items() if sign in text), None)
