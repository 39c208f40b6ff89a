"""Reads the stacks that a debugger printed, and says which threads did not move between two looks; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

# gdb: `Thread 3 (Thread 0x7f.. (LWP 123) "name"):`, older ones without name; eu-stack: `TID 123:`.
_THREAD: Final = re.compile(r'^(?:Thread \d+ .*?\(LWP (?P<lwp>\d+)\)(?: "(?P<name>[^"]*)")?|TID (?P<tid>\d+):)')
# `#0  0x00007f.. in name (arguments) from library`, or with eu-stack `#0  0x00007f.. name - library`.
_FRAME: Final = re.compile(r"^#\d+\s+(?:0x[0-9a-f]+\s+)?(?:in\s+)?(?P<function>.+)")
_UNKNOWN: Final = "??"
_TRITONS: Final = ("TRITONBACKEND_", "triton::core::", "triton::backend::")
_SHOWN_FRAMES: Final = 6
_SHOWN_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class ThreadStack:
    """One thread: its name ("" where not told) and its functions, the innermost first."""

    name: str
    functions: tuple[str, ...]


def read_stacks(text: str) -> dict[int, ThreadStack]:
    """Read the output of gdb's `thread apply all bt`, or of eu-stack; thread id -> stack."""
    threads: dict[int, tuple[str, list[str]]] = {}
    frames: list[str] = []
    for line in text.splitlines():
        if thread := _THREAD.match(line):
            frames = []
            threads[int(thread["lwp"] or thread["tid"])] = (thread["name"] or "", frames)
        elif frame := _FRAME.match(line):
            frames.append(_function(frame["function"]))
    return {number: ThreadStack(name, tuple(functions)) for number, (name, functions) in threads.items()}


def _function(text: str) -> str:
    """Keep the name: what it was called with and where it lies may differ from one look to the next."""
    library = re.search(r"(?: from | - )\S*?([^/\s]+)$", text)
    name = re.split(r" \(| from | - ", text, maxsplit=1)[0].strip()
    return f"{_UNKNOWN} in {library[1]}" if name == _UNKNOWN and library else _without_types(name)


def _without_types(name: str) -> str:
    """Leave out template and function arguments: "core::Load(std::map<…> const&)" -> "core::Load"."""
    kept, depth = [], 0
    for character in name:
        depth += character in "<("
        if not depth:
            kept.append(character)
        depth -= character in ">)" and depth > 0
    return "".join(kept).strip() or name


def _is_tritons(functions: tuple[str, ...]) -> bool:
    """Models are loaded, unloaded or run in it; other threads wait for work most of the time."""
    return any(mark in function for function in functions for mark in _TRITONS)


def _shown(functions: tuple[str, ...]) -> str:
    """The innermost function, then those that are not the inside of the C library."""
    named = [*functions[:1], *(function for function in functions[1:] if not function.startswith("__"))]
    return " < ".join(named[:_SHOWN_FRAMES]) or "no frames"


def unmoved(first: str, second: str) -> dict[int, ThreadStack]:
    """Return the threads whose functions are the same at both looks."""
    before, after = read_stacks(first), read_stacks(second)
    return {number: stack for number, stack in after.items() if before.get(number) == stack}


def count_unmoved(first: Mapping[int, str], second: Mapping[int, str]) -> str:
    """Say for all processes together how many threads did not move: "14 of 16 threads did not move"."""
    still = sum(len(unmoved(first.get(pid, ""), text)) for pid, text in second.items())
    total = sum(len(read_stacks(text)) for text in second.values())
    return f"{still} of {total} threads did not move"


def summarise(role: str, first: str, second: str) -> Iterator[str]:
    """Tell the threads of one process that did not move, those with the same functions together.

    Args:
        role: What the process is, such as "server".
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for number, stack in sorted(unmoved(first, second).items()):
        groups.setdefault(stack.functions, []).append(f"{number} {stack.name}".strip())
    yield f"{role}: {sum(map(len, groups.values()))} of {len(read_stacks(second))} threads did not move"
    # Those in Triton's own code first; then, one that stands alone tells more than a pool that waits for work.
    for functions, threads in sorted(groups.items(), key=lambda group: (not _is_tritons(group[0]), len(group[1]))):
        shown = ", ".join(threads[:_SHOWN_THREADS]) + ("…" if len(threads) > _SHOWN_THREADS else "")
        yield f"  {len(threads)} thread{'s' if len(threads) > 1 else ''} ({shown}): {_shown(functions)}"
