"""Registries: the plug-ins of each family by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from tritonchaos.errors import PluginError

FAMILIES: Final = ("targets", "steps", "samplers", "checkers", "reporters")

PluginT = TypeVar("PluginT", bound=type)


@dataclass(frozen=True, slots=True)
class MissingPlugin:
    """A plug-in that could not be imported; it shows in `tritonchaos list` with the reason."""

    name: str
    reason: str


class Registry(Generic[PluginT]):
    """The plug-ins of one family, by name."""

    def __init__(self, family: str) -> None:
        self.family = family
        self._found: dict[str, type[Any]] = {}

    def register(self, plugin: PluginT) -> PluginT:
        """Class decorator: make a plug-in known under its `name`.

        Raises:
            PluginError: No name, no docstring, or the name is taken.
        """
        name = getattr(plugin, "name", None)
        if not isinstance(name, str) or not name:
            raise PluginError(f"{self.family}: {plugin.__name__} has no class attribute `name`")
        if not (plugin.__doc__ or "").strip():
            raise PluginError(f"{self.family}: {name} has no docstring; its first line is its help")
        taken = self._found.get(name)
        if taken is not None and taken.__qualname__ != plugin.__qualname__:
            raise PluginError(f"{self.family}: the name {name!r} is taken by {taken.__module__}")
        self._found[name] = plugin
        return plugin

    def __getitem__(self, name: str) -> type[Any]:
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def names(self) -> list[str]:
        """Names in alphabetical order."""
        return sorted(self._found)

    def help(self, name: str) -> str:
        """First line of the plug-in's docstring."""
        return (self._found[name].__doc__ or "").strip().splitlines()[0]


TARGETS: Final[Registry[Any]] = Registry("targets")
STEPS: Final[Registry[Any]] = Registry("steps")
SAMPLERS: Final[Registry[Any]] = Registry("samplers")
CHECKERS: Final[Registry[Any]] = Registry("checkers")
REPORTERS: Final[Registry[Any]] = Registry("reporters")

MISSING: Final[list[MissingPlugin]] = []
