"""Sampling: settle windows, lost metrics, due times, blocks."""

import threading
from itertools import pairwise
from pathlib import Path

import pytest

from tritonchaos.errors import SamplerError, StoreError
from tritonchaos.plugins import Group, SampleScope
from tritonchaos.sampling import Blocks, Pace, Sampling, governs_settling
from tritonchaos.units import MIB

MS = 1_000_000
SCOPE = SampleScope(pid=1, temp=Path("/nowhere"))


class Clock:
    """Time that only waiting moves on."""

    def __init__(self):
        self.now_ns = 0

    def __call__(self):
        return self.now_ns

    def wait_s(self, seconds):
        self.now_ns += round(seconds * 1_000_000_000)


class Script:
    """A sampler that reads a fixed list of values and then repeats the last; an exception is raised instead."""

    name = "script"

    def __init__(self, *readings):
        self.readings = list(readings)
        self.groups = []
        self.opened = []
        self.closed = 0

    def open(self, scope):
        self.opened.append(scope)
        return {"nvml_device_reserved_bytes": "old driver"}

    def read(self, group):
        self.groups.append(group)
        reading = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if isinstance(reading, Exception):
            raise reading
        return reading

    def quanta(self):
        return {"host_private_bytes": 4096}

    def notes(self):
        return ["a neighbour"]

    def close(self):
        self.closed += 1


def make_sampling(*samplers, clock=None, deliver=lambda block: None):
    clock = clock or Clock()
    return Sampling(samplers, clock, deliver, wait_s=clock.wait_s)


def host(*values):
    return [{"host_private_bytes": value} for value in values]


# --- settle window -------------------------------------------------------------------------------


def test_flat_readings_settle_after_three_at_0_10_and_20_ms():
    sampler = Script(*host(100))

    settled = make_sampling(sampler).settle(3, 2.0)

    assert settled.times_ns == (0, 10 * MS, 20 * MS)
    assert settled.values == {"host_private_bytes": (100, 100, 100)}
    assert settled.settled == {"host_private_bytes"}
    assert set(sampler.groups) == {Group.ALL}


def test_window_goes_on_until_the_last_readings_lie_within_one_quantum():
    falling = Script(*host(9 * MIB, 5 * MIB, MIB, MIB + 16384, MIB))

    settled = make_sampling(falling).settle(3, 2.0)

    assert settled.times_ns[-1] == 40 * MS
    assert settled.values["host_private_bytes"][-3:] == (MIB, MIB + 16384, MIB)
    assert settled.settled == {"host_private_bytes"}


def test_window_ends_at_its_limit_and_says_what_has_not_settled():
    restless = Script(
        *({"nvml_device_used_bytes": number * 4 * MIB, "server_fds": 40} for number in range(100)),
    )

    settled = make_sampling(restless).settle(3, 0.1)

    assert settled.times_ns[-1] == 100 * MS
    assert settled.settled == {"server_fds"}


def test_metrics_that_fluctuate_by_nature_do_not_keep_the_window_open():
    readings = [{"host_private_bytes": 1, "host_pss_bytes": 10**6 * n, "server_children": 5 * n} for n in range(9)]

    settled = make_sampling(Script(*readings)).settle(3, 2.0)

    assert len(settled.times_ns) == 3
    assert settled.settled == {"host_private_bytes"}


def test_a_metric_that_vanishes_is_a_gap_and_does_not_keep_the_window_open():
    one_flat = Script({"host_private_bytes": 1, "shm_bytes": 0}, {"shm_bytes": 0})

    settled = make_sampling(one_flat).settle(3, 2.0)

    assert settled.values == {"host_private_bytes": (1, None, None, None), "shm_bytes": (0, 0, 0, 0)}
    assert settled.settled == {"shm_bytes"}


def test_a_slow_reading_is_followed_by_the_next_at_once():
    clock = Clock()

    class Slow(Script):
        def read(self, group):
            clock.now_ns += 15 * MS
            return super().read(group)

    settled = make_sampling(Slow(*host(1)), clock=clock).settle(3, 2.0)

    assert settled.times_ns == (0, 15 * MS, 30 * MS)


def test_without_any_sampler_a_window_still_ends():
    settled = make_sampling().settle(3, 2.0)

    assert (len(settled.times_ns), settled.values, settled.settled) == (3, {}, frozenset())


@pytest.mark.parametrize(
    ("metric", "governs"),
    [
        ("nvml_process_used_bytes@GPU-1", True),
        ("stub_rss_bytes", True),
        ("shm_bytes", True),
        ("temp_bytes", True),
        ("server_threads", True),
        ("shm_other_bytes", False),
        ("server_zombies", False),
        ("stub_pss_bytes", False),
    ],
)
def test_which_metrics_govern_a_settle_window(metric, governs):
    assert governs_settling(metric) is governs


# --- opening, losing -----------------------------------------------------------------------------


def test_open_gives_what_cannot_be_read_and_opens_again_after_a_restart():
    sampler = Script({})
    sampling = make_sampling(sampler)

    assert sampling.open(SCOPE) == {"nvml_device_reserved_bytes": "old driver"}
    sampling.open(SampleScope(pid=2))

    assert [scope.pid for scope in sampler.opened] == [1, 2]
    assert sampler.closed == 2, "what an earlier open took is released first"


def test_a_sampler_that_fails_loses_what_it_had_shown_and_the_rest_goes_on():
    failing = Script({"nvml_device_used_bytes": 5}, SamplerError("GPU is lost"))
    sampling = make_sampling(failing, Script(*host(7)))

    assert sampling.read(Group.FAST) == {"nvml_device_used_bytes": 5, "host_private_bytes": 7}
    assert sampling.read(Group.FAST) == {"host_private_bytes": 7}
    assert sampling.lost() == {"nvml_device_used_bytes": "GPU is lost"}
    sampling.read(Group.FAST)
    assert len(failing.groups) == 2, "a lost sampler is not asked again"


def test_a_sampler_may_lose_some_metrics_and_keep_the_others():
    one_gone = SamplerError("GPU is lost", metrics=["nvml_device_used_bytes@GPU-1"])
    back = {"nvml_device_used_bytes@GPU-1": 1, "nvml_device_used_bytes@GPU-2": 2}
    sampling = make_sampling(Script(back, one_gone, back))

    sampling.read(Group.FAST)
    sampling.read(Group.FAST)

    assert sampling.read(Group.FAST) == {"nvml_device_used_bytes@GPU-2": 2}, "what is lost stays lost"
    assert sampling.lost() == {"nvml_device_used_bytes@GPU-1": "GPU is lost"}


def test_what_to_do_about_a_lost_metric_is_said_in_one_line():
    sampling = make_sampling(Script({"a_bytes": 5}, SamplerError("GPU is lost", hint="look at the driver")))
    sampling.read(Group.FAST)
    sampling.read(Group.FAST)

    assert sampling.lost() == {"a_bytes": "GPU is lost; look at the driver"}


def test_a_sampler_that_fails_at_its_first_reading_loses_all_it_names():
    sampling = make_sampling(Script(SamplerError("gone")))

    assert sampling.read(Group.ALL) == {}
    assert sampling.lost() == {"host_private_bytes": "gone"}


# --- due times and blocks ------------------------------------------------------------------------


def test_pace_adds_the_interval_to_the_due_time_and_counts_what_was_missed():
    pace = Pace(20, 0)

    assert (pace.advance(3), pace.due_ns) == (0, 20)
    assert (pace.advance(39), pace.due_ns) == (0, 40), "lateness does not move the due times"
    assert (pace.advance(101), pace.due_ns) == (3, 120), "those due at 60, 80 and 100 were missed"
    assert (pace.advance(140), pace.due_ns) == (1, 160)


def test_blocks_hold_one_second_and_lack_what_was_missed():
    blocks = Blocks()

    assert blocks.add(0, {"a": 1}) == {}
    assert blocks.add(999 * MS, {"a": 2, "b": 3}) == {}
    assert blocks.add(1000 * MS, {"a": 4}) == {"a": [(0, 1), (999 * MS, 2)], "b": [(999 * MS, 3)]}
    assert blocks.take() == {"a": [(1000 * MS, 4)]}
    assert blocks.take() == {}


# --- the thread ----------------------------------------------------------------------------------


class Ticking(Clock):
    """Every look at the clock takes 20 ms, so that the thread never waits."""

    def __call__(self):
        self.now_ns += 20 * MS
        return self.now_ns


def test_thread_delivers_blocks_reads_the_slow_group_once_a_second_and_stops():
    blocks, enough = [], threading.Event()

    def deliver(block):
        blocks.append(block)
        if len(blocks) == 3:
            enough.set()

    sampler = Script(*host(1))
    sampling = make_sampling(sampler, clock=Ticking(), deliver=deliver)
    sampling.start()
    assert enough.wait(60)
    sampling.close()
    sampling.close()

    assert "sampling" not in [thread.name for thread in threading.enumerate()]
    stamps = [t_ns for block in blocks for t_ns, _ in block["host_private_bytes"]]
    assert stamps == sorted(stamps)
    assert len(stamps) == len(sampler.groups), "also the samples of the last, unfinished block are delivered"
    slow = [t_ns for t_ns, group in zip(stamps, sampler.groups, strict=True) if group is Group.ALL]
    assert slow[0] == stamps[0]
    assert all(800 * MS < later - earlier < 1200 * MS for earlier, later in pairwise(slow))
    assert "a neighbour" in sampling.notes()
    assert (sampling.missed_note() or "").startswith("the sampling thread missed")


def test_thread_rests_during_a_settle_window():
    clock, readings = Clock(), []

    class Watching(Script):
        def read(self, group):
            readings.append(threading.current_thread().name)
            return super().read(group)

    sampling = Sampling([Watching(*host(1))], Ticking(), lambda block: None, wait_s=clock.wait_s)
    sampling.start()
    settled = sampling.settle(3, 60.0)
    sampling.close()

    own = [name for name in readings if name != "sampling"]
    assert len(own) == len(settled.times_ns) == 3


def test_failure_on_the_thread_reaches_the_caller():
    failed = threading.Event()

    def deliver(block):
        failed.set()
        raise StoreError("disk is full")

    sampling = make_sampling(Script(*host(1)), clock=Ticking(), deliver=deliver)
    sampling.start()
    assert failed.wait(60)

    with pytest.raises(StoreError, match="disk is full"):
        sampling.close()
    sampling.close()
