"""Recognises addresses of machines, and tells them from version numbers and times."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

_IPV4: Final = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)(?![A-Za-z_])")
_IPV6: Final = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f:.]*\d)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\.\d{1,3}){3})?(?:%\w+)?(?![\w:])"
)
_MAC: Final = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])")
# What stands right before a number of four parts that is a version.
_VERSION_BEFORE: Final = re.compile(
    r"(?:version|release|ver\.?|driver|triton(?:server|client)?|tensorrt|trt|cuda|cudnn|nccl|nvml|glibc|gcc|python|kernel|linux"
    r"|[=~<>!]=|[<>]|\bv|[-_]|\.so\.|\.)[\"']?(?:\s*[|=:(]\s*|\s+)?[\"']?\Z",
    re.IGNORECASE,
)
_ADDRESS_BEFORE: Final = re.compile(
    r"(?:://|@|\b(?:from|host|addr|address|peer|client|ip|inet6?|connect(?:ed|ing)?|listen(?:ing)?|at|on|to|via)\W{0,3})\Z",
    re.IGNORECASE,
)
_PORT_AFTER: Final = re.compile(r":\d{1,5}(?!\d)|/\d{1,2}(?!\d)")
_LOOK_BEHIND: Final = 24


def find_addresses(text: str, versions: frozenset[str] = frozenset()) -> list[tuple[int, int]]:
    """Return the spans of IP and MAC addresses in a text; loopback and "any" addresses are nobody's and stay.

    Args:
        versions: Texts that are known to be version numbers, such as "10.13.3.9".
    """
    spans = [match.span() for match in _IPV4.finditer(text) if _is_ipv4(match, text, versions)]
    spans += [match.span() for match in _IPV6.finditer(text) if _is_ipv6(match[0])]
    spans += [match.span() for match in _MAC.finditer(text)]
    return sorted(spans)


def _is_ipv4(match: re.Match[str], text: str, versions: frozenset[str]) -> bool:
    try:
        address = ipaddress.IPv4Address(match[0])
    except ValueError:  # a part above 255, or 08
        return False
    if address.is_loopback or address.is_unspecified or match[0] in versions:
        return False
    before = text[max(0, match.start() - _LOOK_BEHIND) : match.start()]
    if _ADDRESS_BEFORE.search(before) or _PORT_AFTER.match(text, match.end()):
        return True
    return not (_VERSION_BEFORE.search(before) or _looks_like_version(address))


def _looks_like_version(address: ipaddress.IPv4Address) -> bool:
    """2.51.0.1 with nothing around it that says what it is: versions are made of small numbers."""
    parts = address.packed
    return parts[0] < 10 and min(parts[2:]) < 10 and not address.is_private


def _is_ipv6(text: str) -> bool:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)
