"""Recognises secrets by their form: keys of well-known makers, passwords beside their names, certificates."""

from __future__ import annotations

import re
from typing import Final

_KEY_NAME: Final = (
    r"(?:[A-Za-z0-9]{1,40}[_.-]){0,6}(?:password|passwd|passphrase|[A-Za-z0-9]{1,40}_pwd|secret|token|api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?"
    r"|secret[_-]?key|private[_-]?key|account[_-]?key|credentials?|authorization)"
)
# Forms that the makers of the keys document, so that secret scanners can find them.
_BY_FORM: Final = (
    r"(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}",  # AWS key ids
    r"gh[pousr]_[A-Za-z0-9]{20,255}",
    r"github_pat_[A-Za-z0-9_]{20,255}",
    r"gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_-]{20,}",
    r"hf_[A-Za-z0-9]{20,}",
    r"nvapi-[A-Za-z0-9_-]{20,}",
    r"sk-[A-Za-z0-9_-]{20,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",  # JSON web tokens
    r"dckr_pat_[A-Za-z0-9_-]{20,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{40,}",
)

BY_FORM: Final = re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(_BY_FORM)})(?![A-Za-z0-9])")
PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
# "user:password@" in an address.
IN_ADDRESS: Final = re.compile(
    r"(?P<kept>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{0,20}://)(?P<taken>[^\s/@\"'<>]+)(?=@)"
)
SCHEME_AND_TOKEN: Final = re.compile(
    r"(?P<kept>\b(?:Bearer|Basic|Digest|Token)\s+)(?P<taken>[A-Za-z0-9+/_.~=-]{8,})", re.IGNORECASE
)
# NAME=value, NAME: value, "NAME": "value", --name value; a number is no secret (max_tokens: 512).
BESIDE_NAME: Final = re.compile(
    rf"(?P<kept>(?<![A-Za-z0-9]){_KEY_NAME}(?P<quote>\\?[\"']?)\s*(?:=>|[=:]|(?<=--)\s)\s*\\?[\"']?)"
    r"(?P<taken>(?!\$\{)(?!<)[^\s\"',;&|}\])\\]{6,})",
    re.IGNORECASE,
)
# The same in the text of a config.pbtxt, where name and value stand in two fields.
IN_CONFIG: Final = re.compile(
    rf"(?P<kept>key\s*:\s*[\"'](?:{_KEY_NAME})[\"'][^{{}}]{{0,200}}value\s*:?\s*{{[^}}]{{0,2000}}?string_value\s*:\s*[\"'])"
    r"(?P<taken>[^\"']+)",
    re.IGNORECASE,
)
# Signatures in the query of a signed address.
IN_QUERY: Final = re.compile(
    r"(?P<kept>[?&](?:X-Amz-(?:Signature|Credential|Security-Token)|X-Goog-(?:Signature|Credential)|Signature|sig|token"
    r"|access_token|key)=)(?P<taken>[^\s&\"'<>]+)",
    re.IGNORECASE,
)

# The public half names its owner's machines wherever it is listed.
SSH_KEY: Final = re.compile(
    r"(?P<kept>(?<![\w-])(?:ssh-[a-z0-9]{3,10}|ecdsa-sha2-nistp\d{3})\s{1,3})(?P<taken>AAAA[A-Za-z0-9+/=]{16,})"
)

PARTS: Final = (SSH_KEY, IN_ADDRESS, SCHEME_AND_TOKEN, BESIDE_NAME, IN_CONFIG, IN_QUERY)
WHOLE: Final = (PRIVATE_KEY, BY_FORM)
