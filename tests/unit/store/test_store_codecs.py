from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonchaos.errors import StoreError, TritonChaosBug
from tritonchaos.observations import Answer, Event, Expectation, Note, Position, StepFinished, StepSpec, TrafficSummary
from tritonchaos.store.codecs import codec_for, layout_of
from tritonchaos.store.compiled import EventReader
from tritonchaos.store.interning import Interned, Interner
from tritonchaos.store.layout import event_codec
from tritonchaos.store.packing import Cursor, squeeze

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(st.text(max_size=8), json_values, max_size=4)
# Not a number is not equal to itself.
numbers = st.floats(allow_nan=False) | st.integers()
expectations = st.builds(Expectation, within_s=st.none() | numbers)
step_specs = st.builds(StepSpec, fields=json_objects, expect=expectations, deadline_s=numbers)
special = {
    StepFinished: st.builds(StepFinished, spec=step_specs, observed=json_objects),
    TrafficSummary: st.builds(TrafficSummary, spec=step_specs),
}


def through_bytes(value, kind: Any = Event, layout=None, written_layout=None):
    written = layout or layout_of(kind)
    interner = Interner()
    out = bytearray()
    shared = frozenset({StepSpec})
    (event_codec(written) if kind is Event else codec_for(kind, written, shared)).write(value, out, interner)
    interned = Interned(dict(interner.take_new()))
    packed = Cursor(bytes(out))
    back = (event_codec(written) if kind is Event else codec_for(kind, written, shared)).read(packed, interned)
    assert packed.is_at_end
    return back


def through_compiled_reader(event, layout=None):
    codec, interner, out = event_codec(layout or layout_of(Event)), Interner(), bytearray()
    codec.write(event, out, interner)
    interned = Interned(dict(interner.take_new()))
    reader, stored = EventReader(codec, interned), squeeze(bytes(out))
    assert reader.kind_of(stored) is type(event)
    return reader.read(stored)


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.__name__)
def test_every_event_comes_back_as_it_was(kind):
    @settings(max_examples=60, deadline=None)
    @given(special.get(kind, st.from_type(kind)))
    def comes_back(event):
        for back in (through_bytes(event), through_compiled_reader(event)):
            assert back == event
            assert type(back) is kind

    comes_back()


def position(**changes) -> Position:
    facts = {"phase": "wrong", "arm": None, "cycle": 3, "track": "main", "step_number": 1}
    return Position(**{**facts, **changes})


def finished(observed=None, reply=None, deadline_s=30) -> StepFinished:
    spec = StepSpec("load", "ident", {"model": "ident"}, Expectation(status=(400, 500)), deadline_s=deadline_s)
    return StepFinished(position(), 1, 2, spec, reply, observed or {}, 0, 0)


def test_types_are_kept_apart():
    observed = {"whole": 1, "real": 1.0, "true": True, "none": None, "big": 2**100, "nested": [{"a": [1, 2.5]}]}
    back = through_bytes(finished(observed, deadline_s=30))
    assert repr(back.observed) == repr(observed)
    assert repr(back.spec.deadline_s) == "30"
    assert back.spec.expect.status == (400, 500)
    assert repr(through_bytes(finished(deadline_s=30.0)).spec.deadline_s) == "30.0"


def test_bytes_of_a_body_and_undecodable_names_survive():
    assert through_bytes(finished(reply=Answer(400, b"\xff\x00{", 5))).reply == Answer(400, b"\xff\x00{", 5)
    assert through_bytes(Note(1, "path \udcff")).text == "path \udcff"


def test_what_json_cannot_carry_is_a_bug_that_names_its_type():
    with pytest.raises(TritonChaosBug, match="found a set"):
        through_bytes(finished({"match": {1, 2}}))
    with pytest.raises(TritonChaosBug, match="found a dict"):
        through_bytes(finished({"by number": {1: 2}}))


def test_what_is_no_event_is_a_bug():
    with pytest.raises(TritonChaosBug, match=r"found a Position to be stored, expected one of .*Note"):
        through_bytes(position())


def test_a_field_added_later_takes_its_default_in_an_older_store():
    @dataclass(frozen=True)
    class Thing:
        name: str
        certain: bool = True

    older = {"Thing": ("name",)}
    assert through_bytes(Thing("shm", False), Thing, older) == Thing("shm", True)


def test_a_field_of_a_newer_store_is_refused():
    with pytest.raises(StoreError, match=r"newer tritonchaos; found Note\.colour"):
        codec_for(Event, {"Note": ("t_ns", "text", "colour")})


def test_a_type_that_cannot_be_stored_is_a_bug():
    with pytest.raises(TritonChaosBug, match="cannot be stored"):
        codec_for(Mapping[int, str], {})


def test_records_that_come_one_after_the_other_are_kept_apart():
    interner, out = Interner(), bytearray()
    codec = event_codec(layout_of(Event))
    steps = [finished(deadline_s=deadline_s) for deadline_s in range(2500)]
    for step in [*steps, *reversed(steps)]:
        codec.write(step, out, interner)
    interned, packed = Interned(dict(interner.take_new())), Cursor(bytes(out))
    back = [codec.read(packed, interned).spec.deadline_s for _ in range(5000)]
    assert back == [*range(2500), *reversed(range(2500))]


def test_equal_specs_are_stored_once():
    interner = Interner()
    codec = event_codec(layout_of(Event))
    codec.write(finished(), bytearray(), interner)
    assert len(interner.take_new()) > 3
    codec.write(finished(), bytearray(), interner)
    assert interner.take_new() == []
