"""Texts and bodies kept once and referred to by number."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from tritonchaos.store.packing import write_count

# Longer bodies are remembered by their digest, so that a run's memory does not hold every body it has seen.
_KEPT_WHOLE_BYTES: Final = 256
# A run whose texts are all different would remember them all; it starts over instead and stores a few texts twice.
_REMEMBERED: Final = 50_000
_REMEMBERED_RECORDS: Final = 1000


class Interner:
    """Numbers each different byte string, and holds the new ones until they are written."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._count = 0
        self._new: list[tuple[int, bytes]] = []
        # Most of what is written is a text that was written before: its number, as it is packed.
        self._packed_texts: dict[str, bytes] = {}
        self._records: dict[int, tuple[object, int]] = {}

    def number(self, body: bytes) -> int:
        """Return the number of these bytes, a new one if they have not been seen."""
        key = body if len(body) <= _KEPT_WHOLE_BYTES else b"sha256:" + hashlib.sha256(body).digest()
        number = self._numbers.get(key)
        if number is None:
            number = self._add(key, body)
        return number

    def packed_text(self, text: str) -> bytes:
        """Return the number of a text as `packing.write_count` writes it."""
        packed = self._packed_texts.get(text)
        if packed is None:
            out = bytearray()
            # Undecodable file names reach us as lone surrogates; they must survive.
            write_count(self.number(text.encode("utf-8", "surrogatepass")), out)
            packed = bytes(out)
            if len(text) <= _KEPT_WHOLE_BYTES:
                self._packed_texts[text] = packed
        return packed

    def number_of(self, record: object, pack: Callable[[], bytes]) -> int:
        """Return the number of a frozen record's bytes; the same object is packed once."""
        known = self._records.get(id(record))
        if known is None:
            if len(self._records) >= _REMEMBERED_RECORDS:
                self._records.clear()
            # The record is held, so that its id is not given to another one.
            known = self._records[id(record)] = (record, self.number(pack()))
        return known[1]

    def _add(self, key: bytes, body: bytes) -> int:
        if len(self._numbers) >= _REMEMBERED:
            self._numbers.clear()
            self._packed_texts.clear()
        number = self._count
        self._count += 1
        self._numbers[key] = number
        self._new.append((number, body))
        return number

    def take_new(self) -> list[tuple[int, bytes]]:
        """Return what has not been written yet, as (number, body), and forget that it is new."""
        new, self._new = self._new, []
        return new


class Interned:
    """What a store has interned, by number."""

    def __init__(self, bodies: Mapping[int, bytes]) -> None:
        self._bodies = bodies
        self._texts: dict[int, str] = {}
        self._records: dict[tuple[int, int], Any] = {}

    def body(self, number: int) -> bytes:
        """Return the bytes with this number.

        Raises:
            KeyError: There are none.
        """
        return self._bodies[number]

    @property
    def texts(self) -> Mapping[int, str]:
        """Texts that were asked for up to now, by number."""
        return self._texts

    def text(self, number: int) -> str:
        """Return the same as text."""
        text = self._texts.get(number)
        if text is None:
            text = self._texts[number] = self._bodies[number].decode("utf-8", "surrogatepass")
        return text

    def record(self, number: int, kind: object, unpack: Callable[[bytes], Any]) -> Any:
        """Return the record that the bytes with this number hold; it is made once.

        Args:
            kind: What tells apart records of different kinds that happen to have the same bytes.
        """
        key = (number, id(kind))
        if key not in self._records:
            self._records[key] = unpack(self._bodies[number])
        return self._records[key]
