"""Takes secrets, people and machines out of texts, and keeps a list of what it took."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tritonchaos.redaction import secrets
from tritonchaos.redaction.addresses import find_addresses

# Folders that are the same on every machine, so that they tell nothing and are needed to reproduce.
_KEPT_ROOTS: Final = (
    "opt/tritonserver", "opt/nvidia", "usr", "lib", "lib32", "lib64", "bin", "sbin", "proc", "sys", "dev", "v2",
    "models", "repro", "path/to", "etc/ssl", "etc/ld.so",
)  # fmt: skip
_PATH: Final = re.compile(
    rf"(?<![\w./~<>-])/(?!(?:{'|'.join(re.escape(root) for root in _KEPT_ROOTS)})(?![\w.-]))"
    r"(?:[^\s/'\"`<>|:;,()\[\]{}\\]+/)+[^\s/'\"`<>|:;,()\[\]{}\\]*"
)
_HOME: Final = re.compile(
    r"(?:(?<![\w.~-])(?:/(?:home|Users|export/home|data/home|nfs/home|mnt/home)/|[A-Za-z]:\\+Users\\+)"
    r"(?P<user>[A-Za-z0-9._-]+)|(?<![\w./~-])~(?P<other>[A-Za-z][A-Za-z0-9._-]*)(?=/)|(?<![\w./~-])/root(?=/|\b)|(?<![\w./~-])~(?=/))"
    r"(?P<rest>(?:[/\\][^\s'\"`<>|:;,()\[\]{}]*)?)"
)
_USER: Final = re.compile(
    r"(?P<kept>(?<![A-Za-z0-9])(?:USER|USERNAME|LOGNAME|user|username|login|owner)[\"']?\s*[=:]\s*[\"']?"
    r"|\b[ug]id=\d+\()(?P<taken>[A-Za-z_][A-Za-z0-9._-]{1,31})"
)
_HOST: Final = re.compile(
    r"(?P<kept>(?<![A-Za-z0-9])(?:HOSTNAME|hostname|host[_ ]name|nodename|node[_ ]name|NODE_NAME|POD_NAME|AccountName)"
    r"[\"']?\s*[=:]\s*[\"']?)(?P<taken>[A-Za-z0-9][A-Za-z0-9.-]*)"
)
_IN_URL: Final = re.compile(
    r"(?P<kept>(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{0,20}://(?:[^\s/@]*@)?)(?P<taken>[A-Za-z0-9][A-Za-z0-9.-]*)"
)
# What lies on a machine or in a bucket that was taken out.
_ON_HOST: Final = re.compile(
    r"(?P<kept>://(?:<token>@)?\[?<(?:host|ip)>\]?(?::\d{1,5})?)(?P<taken>/(?!v2/)[^\s'\"`<>?#,:;)]+)"
)
# Last components of paths that are the same for everybody.
_COMMON: Final = frozenset(
    {
        *("tritonserver", "python", "python3", "perf_analyzer", "model_repository", "repository", "models", "backends"),
        *("bin", "lib", "lib64", "include", "src", "tmp", "log", "logs", "cache", "config", "venv", "site-packages"),
    }
)
_DOMAIN: Final = re.compile(
    r"(?<![\w@./-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+"
    r"(?:com|net|org|edu|gov|mil|io|ai|dev|cloud|corp|lan|intra|intranet|internal|local|localdomain|home|private|uk|de|fr|nl|ch|se"
    r"|es|it|pl|us|ca|au|jp|cn|kr|tw|br|il)(?![\w-]|\.\w)"
)
_EMAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_PUBLIC: Final = re.compile(
    r"(?:.*\.)?(?:github\.com|githubusercontent\.com|nvidia\.com|nvcr\.io|pypi\.org|python\.org|docker\.io|docker\.com"
    r"|tritonserver\.com|onnx\.ai|pytorch\.org|tensorflow\.org|localhost|example\.(?:com|org|net))\Z",
    re.IGNORECASE,
)
# Names that stand for a role, not for a person or a machine.
_NOBODY: Final = frozenset(
    {
        *("root", "user", "users", "admin", "ubuntu", "debian", "centos", "runner", "nobody", "daemon", "app", "owner"),
        *(
            "model",
            "models",
            "triton",
            "triton-server",
            "tritonserver",
            "server",
            "client",
            "docker",
            "nvidia",
            "ident",
        ),
        *("none", "null", "true", "false", "localhost", "workspace", "shared", "data", "test", "build", "default"),
        *("name", "names", "id", "group", "key", "value", "string", "int", "unknown"),
    }
)
_SHORTEST_LEARNT: Final = 3
_SHORTEST_VALUE: Final = 5
_PLAIN_VALUE: Final = re.compile(
    r"[\d.,:+-]*\Z|(?:true|false|yes|no|on|off|none|info|debug|error|warning)\Z", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken out of one place: its kind, where, and how often. The text itself is never kept."""

    kind: str
    where: str
    count: int


@dataclass(slots=True)
class Redactor:
    """Replaces what must not be seen by a word that says what stood there; the same text gives the same result.

    A name that is learnt in one text (a user by a home path, a host by an address) is taken out of all that come later;
    so `learn` from every text first.

    Args:
        values: Texts that are secret wherever they stand, such as the values of environment variables, by their name.
        versions: Texts that are version numbers although they look like addresses.
        names: Last components of paths that are needed to understand the rest, such as names of models.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    versions: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    _users: set[str] = field(default_factory=set, init=False)
    _hosts: set[str] = field(default_factory=set, init=False)
    _taken: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)

    @property
    def taken(self) -> list[Taken]:
        """What was taken out so far, by place and kind."""
        return [
            Taken(kind, where, count) for (kind, where), count in sorted(self._taken.items(), key=lambda i: i[0][::-1])
        ]

    def note(self, kind: str, where: str, count: int = 1) -> None:
        """Put something on the list that was left out by somebody else, such as a file."""
        self._taken[kind, where] += count

    def learn(self, texts: Iterable[str]) -> None:
        """Learn the names of users and hosts that these texts give away."""
        for text in texts:
            for match in _HOME.finditer(text):
                self._learn(self._users, match["user"] or match["other"])
            for match in _USER.finditer(text):
                self._learn(self._users, match["taken"])
            for pattern in (_HOST, _IN_URL):
                for match in pattern.finditer(text):
                    if not _PUBLIC.match(match["taken"]) and not _is_number(match["taken"]):
                        self._learn(self._hosts, match["taken"])

    def _learn(self, names: set[str], name: str | None) -> None:
        if name and len(name) >= _SHORTEST_LEARNT and name.lower() not in _NOBODY:
            names.add(name.rstrip(".-"))

    def text(self, text: str, where: str) -> str:
        """Take everything out of a text.

        Args:
            where: Name of the place, for the list of what was taken out.
        """
        for replace in (self._secrets, self._values, self._people, self._paths, self._machines, self._learnt):
            text = replace(text, where)
        return text

    def plain(self, value: Any, where: str) -> Any:
        """Do the same in every text of a JSON value."""
        if isinstance(value, str):
            return self.text(value, where)
        if isinstance(value, Mapping):
            return {self.text(str(key), where): self.plain(element, where) for key, element in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(element, where) for element in value]
        return value

    # --- one kind after the other ----------------------------------------------------------------

    def _secrets(self, text: str, where: str) -> str:
        for pattern in secrets.WHOLE:
            text = self._sub(pattern, text, "token", where, lambda match: "<token>")
        for pattern in secrets.PARTS:
            text = self._sub(pattern, text, "token", where, _keep_name, unless=lambda m: _is_number(m["taken"]))
        return text

    def _values(self, text: str, where: str) -> str:
        """The longest first, so that no value is cut by one that it contains."""
        secret = {value: name for name, value in self.values.items() if _is_secret_value(value)}
        for value in sorted(secret, key=len, reverse=True):
            count = text.count(value)
            if count:
                text = text.replace(value, f"<value of {secret[value]}>")
                self._taken["environment value", where] += count
        return text

    def _people(self, text: str, where: str) -> str:
        text = self._sub(_EMAIL, text, "e-mail address", where, lambda match: "<e-mail>")
        known = lambda m: m["taken"].lower() in _NOBODY  # noqa: E731
        return self._sub(_USER, text, "user name", where, lambda m: f"{m['kept']}<user>", unless=known)

    def _paths(self, text: str, where: str) -> str:
        text = self._sub(_HOME, text, "home path", where, lambda m: self._shortened("<home>", m["rest"]))
        return self._sub(_PATH, text, "path", where, lambda match: self._shortened("<path>", match[0]))

    def _shortened(self, word: str, path: str) -> str:
        """Keep a file's name, a version's number and a name that is known; a folder may be a project or a customer."""
        last = re.split(r"[/\\]+", path.rstrip("/\\"))[-1]
        is_kept = "." in last or last.isdigit() or last in self.names or last in _COMMON
        return f"{word}/{last}" if is_kept else word

    def _machines(self, text: str, where: str) -> str:
        spans = find_addresses(text, self.versions)
        for start, end in reversed(spans):
            text = f"{text[:start]}<ip>{text[end:]}"
        if spans:
            self._taken["IP or MAC address", where] += len(spans)
        public = lambda m: bool(_PUBLIC.match(m["taken"])) or _is_number(m["taken"])  # noqa: E731
        for pattern in (_HOST, _IN_URL):
            text = self._sub(pattern, text, "host name", where, lambda m: f"{m['kept']}<host>", unless=public)
        of_host = lambda m: m["taken"].count("/") == 1 and "." in m["taken"]  # noqa: E731
        shortened = lambda m: m["kept"] + self._shortened("/<path>", m["taken"])  # noqa: E731
        text = self._sub(_ON_HOST, text, "path", where, shortened, unless=of_host)
        return self._sub(
            _DOMAIN, text, "host name", where, lambda match: "<host>", unless=lambda m: bool(_PUBLIC.match(m[0]))
        )

    def _learnt(self, text: str, where: str) -> str:
        for names, word in ((self._users, "user"), (self._hosts, "host")):
            for name in sorted(names, key=len, reverse=True):
                pattern = re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
                text = self._sub(pattern, text, f"{word} name", where, _word(f"<{word}>"))
        return text

    def _sub(
        self,
        pattern: re.Pattern[str],
        text: str,
        kind: str,
        where: str,
        replacement: Callable[[re.Match[str]], str],
        unless: Callable[[re.Match[str]], bool] = lambda match: False,
    ) -> str:
        def replace(match: re.Match[str]) -> str:
            if unless(match):
                return match[0]
            self._taken[kind, where] += 1
            return replacement(match)

        return pattern.sub(replace, text)


def _keep_name(match: re.Match[str]) -> str:
    return f"{match['kept']}<token>"


def _word(word: str) -> Callable[[re.Match[str]], str]:
    return lambda match: word


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[\d.:xX]+", text) is not None


def _is_secret_value(value: str) -> bool:
    return len(value) >= _SHORTEST_VALUE and not _PLAIN_VALUE.match(value)
