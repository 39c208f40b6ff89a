"""How run.db is laid out: file names, tables, keys, and its format version."""

from __future__ import annotations

from typing import Final

from tritonchaos.observations import Event, ModelState, StepSpec
from tritonchaos.store.codecs import Layout, OneOf, codec_for
from tritonchaos.store.value_codecs import Codec

# Raised when an older tritonchaos could no longer read what is written; added fields and events do not raise it.
FORMAT_VERSION: Final = 2
FIRST_WITH_CYCLES: Final = 2

DATABASE: Final = "run.db"
SCENARIO: Final = "scenario.yaml"
LOG: Final = "server.log"

# Events, texts and samples are packed rows (see `codecs`, `interning`, `samples`), squeezed (see `packing`). From
# format 2 on, cycles are blocks of columns (see `cycle_blocks`), made of the events and of nothing else.
TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE interned (number INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE events (number INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE samples (number INTEGER PRIMARY KEY, packed BLOB NOT NULL);
CREATE TABLE cycles (number INTEGER PRIMARY KEY, first_event INTEGER NOT NULL, crc INTEGER NOT NULL, packed BLOB);
"""

# Keys of meta; values are JSON.
KEY_FORMAT_VERSION: Final = "format_version"
KEY_LAYOUT: Final = "layout"
KEY_FACTS: Final = "facts"
KEY_END: Final = "end"
REMEMBERED: Final = "remembered:"


# What a step was and what the index said repeat from cycle to cycle.
_SHARED: Final = frozenset({StepSpec, ModelState})


def step_codec(layout: Layout) -> Codec:
    """Make the codec of what a step was, which writes the number that it is interned under."""
    return codec_for(StepSpec, layout, _SHARED)


def event_codec(layout: Layout) -> OneOf:
    """Make the codec of events."""
    codec = codec_for(Event, layout, _SHARED)
    assert isinstance(codec, OneOf)  # an event is one of several records
    return codec
