"""Cycles that are alike are shown once in each state of a follower, and counted for the rest."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence

from tritonchaos.observations import Event, Note
from tritonchaos.observations.skimming import Makes, Skims, skim


class Letters:
    """Stretches of one note each; cycles of one letter are alike, capitals are like no other."""

    def __init__(self, letters: str) -> None:
        self.letters = letters
        self.shapes = array("I", (0 if letter.isupper() else ord(letter) for letter in letters))
        self.shown: list[int] = []

    def check(self) -> None:
        pass

    def events(self, at: int) -> Sequence[Event]:
        self.shown.append(at)
        return [Note(at, self.letters[at])]


class Pairs:
    """Counts which letter follows which, and keeps each `x`."""

    kinds = (Note,)

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.kept_at: list[int] = []
        self.last = ""

    def see(self, note: Note) -> None:
        self.counts[self.last + note.text] += 1
        self.last = note.text
        if note.text == "x":
            self.kept_at.append(note.t_ns)

    @property
    def kept(self) -> int:
        return len(self.kept_at)

    def state(self) -> str:
        return self.last

    def resume(self, state: str) -> None:
        self.last = state

    def made(self) -> str:
        return self.last.upper()


def walked(letters: str) -> Pairs:
    pairs = Pairs()
    for at, letter in enumerate(letters):
        pairs.see(Note(at, letter))
    return pairs


def test_what_is_skimmed_comes_to_the_same_as_a_walk() -> None:
    for letters in ("", "a", "aaaaaa", "abababab" * 5, "aabbaBbaaxaabxxabC" * 3, "Aaaaa", "xxxx"):
        stretches, pairs = Letters(letters), Pairs()
        (made,) = skim(stretches, [pairs])
        assert (pairs.counts, pairs.kept_at, pairs.last) == (
            walked(letters).counts,
            walked(letters).kept_at,
            walked(letters).last,
        )
        assert [made.values[number] for number in made.numbers] == [letter.upper() for letter in letters]


def test_each_is_shown_once_in_each_state() -> None:
    stretches = Letters("aaaa" + "bbbb" + "aaaa" + "bbbb")
    skim(stretches, [Pairs()])
    # The first a, one after an a, the first b, one after a b, an a after a b; all others have been seen.
    assert stretches.shown == [0, 1, 4, 5, 8]


def test_what_keeps_something_is_shown_each_time() -> None:
    stretches = Letters("axaxax")
    skim(stretches, [Pairs()])
    assert [at for at in stretches.shown if at % 2] == [1, 3, 5]


def test_followers_walk_together_and_each_gets_what_is_its_own() -> None:
    first, second = Pairs(), Pairs()
    second.last = "z"
    stretches = Letters("aaab")
    skim(stretches, [first, second])
    assert first.counts == Counter({"a": 1, "aa": 2, "ab": 1})
    assert second.counts == Counter({"za": 1, "aa": 2, "ab": 1})


def test_the_protocols_tell_who_skims() -> None:
    assert isinstance(Pairs(), Skims)
    assert isinstance(Pairs(), Makes)
    assert not isinstance(object(), Skims)
