"""Which part of a run holds which cycle."""

from tests.builders import CONTROL, TREATMENT, make_cycle, make_step, run
from tritonchaos.observations import CycleStarted, PhaseFacts
from tritonchaos.summary import cycle_counts
from tritonchaos.summary.stretches import stretches_of

HOST = "host_private_bytes"
PHASES = (PhaseFacts("a", CONTROL, "cycles", 2), PhaseFacts("b", TREATMENT, "cycles", 2))
CYCLES = [
    *make_cycle({HOST: 1}, phase="a", arm=CONTROL),
    *make_cycle({HOST: 1}, phase="a", arm=CONTROL, cycle=1),
    *make_cycle({HOST: 1}, phase="b"),
]
BROKEN_OFF = [CycleStarted(9, "b", TREATMENT, 1, False), make_step()]


def test_cycles_are_found_by_their_number() -> None:
    found = stretches_of(run().start().add(*CYCLES, *BROKEN_OFF).history(phases=PHASES))
    assert (found.cycles, list(found.finished), list(found.unfinished)) == (4, [1, 2, 3], [4])
    assert [found.place_of(at) for at in range(5)] == [-1, 0, 1, 2, -1]
    assert (found.numbered("a", 1), found.numbered("b", 0), found.numbered(None, 1)) == ([2], [3], [2, 4])
    assert (found.numbered("a", 2), found.numbered("nothing", 0)) == ([], [])


def test_cycles_are_found_in_whatever_order_their_phases_ran() -> None:
    history = run().add(*CYCLES[-len(CYCLES) // 3 :], *CYCLES[: -len(CYCLES) // 3], *BROKEN_OFF).history(phases=PHASES)
    found = stretches_of(history)
    for phase, cycle in (("a", 0), ("a", 1), ("b", 0), ("b", 1)):
        (at,) = found.numbered(phase, cycle)
        assert (found.begun(at).phase, found.begun(at).cycle) == (phase, cycle)


def test_cycles_are_counted_finished_or_not() -> None:
    assert cycle_counts(run().add(*CYCLES, *BROKEN_OFF).history(phases=PHASES)) == {"a": 2, "b": 2}
    assert cycle_counts(run().history(phases=PHASES)) == {}
