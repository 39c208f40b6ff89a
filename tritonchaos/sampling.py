"""Reads all samplers: on a thread at a fixed rate, in settle windows, and when asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tritonchaos.errors import SamplerError
from tritonchaos.plugins import Group, HasCapacities, Sampler, SampleScope
from tritonchaos.post_unload import Channel, channel, has_settled, may_be_somebody_elses, settle_quantum

Deliver: TypeAlias = Callable[[Mapping[str, Sequence[tuple[int, int]]]], None]

_SECOND_NS: Final = 1_000_000_000
FAST_INTERVAL_NS: Final = _SECOND_NS // 50
SLOW_INTERVAL_NS: Final = _SECOND_NS
BLOCK_NS: Final = _SECOND_NS
SETTLE_INTERVAL_NS: Final = _SECOND_NS // 100

# Proportional memory changes whenever any other process maps or drops the same library, so it may never come to rest.
_FLUCTUATES: Final = frozenset({"host_pss_bytes", "stub_pss_bytes"})
_GOVERNS: Final = frozenset({"server_fds", "server_threads", "shm_bytes", "temp_bytes"})


@dataclass(frozen=True, slots=True)
class Settled:
    """The readings of one settle window.

    Attributes:
        times_ns: Stamps of the readings, shape [readings].
        values: Metric -> one value per reading, shape [readings]; None where that reading had none.
        settled: Metrics whose last readings lay within one quantum.
    """

    times_ns: tuple[int, ...]
    values: Mapping[str, tuple[int | None, ...]]
    settled: frozenset[str]


def governs_settling(metric: str) -> bool:
    """Say whether a settle window waits for this metric to come to rest; the others are only recorded."""
    name = metric.partition("@")[0]
    if name in _FLUCTUATES:
        return False
    return channel(name) in (Channel.DEVICE, Channel.HOST) or name in _GOVERNS


class Pace:
    """Due times at a fixed rate: the interval is added to the previous due time, so that lateness never adds up."""

    def __init__(self, interval_ns: int, first_due_ns: int) -> None:
        self._interval_ns = interval_ns
        self.due_ns = first_due_ns

    def advance(self, now_ns: int) -> int:
        """Move to the first due time after now; return how many due times had already passed unused."""
        self.due_ns += self._interval_ns
        missed = max(0, (now_ns - self.due_ns) // self._interval_ns + 1)
        self.due_ns += missed * self._interval_ns
        return missed


class Blocks:
    """Gathers samples into blocks of one second."""

    def __init__(self) -> None:
        self._ends_ns = 0
        self._samples: dict[str, list[tuple[int, int]]] = {}

    def add(self, t_ns: int, values: Mapping[str, int]) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Take one reading; return the block that it closes, or an empty one."""
        finished = self.take() if t_ns >= self._ends_ns else {}
        if not self._samples:
            self._ends_ns = t_ns + BLOCK_NS
        for metric, value in values.items():
            self._samples.setdefault(metric, []).append((t_ns, value))
        return finished

    def take(self) -> Mapping[str, Sequence[tuple[int, int]]]:
        """Return what has been gathered and start anew."""
        taken, self._samples = self._samples, {}
        return taken


class Panel:
    """The samplers and what became of them. Not thread-safe: `Sampling` holds its lock around every call."""

    def __init__(self, samplers: Sequence[Sampler]) -> None:
        self._samplers = list(samplers)
        self._seen: dict[int, set[str]] = {id(sampler): set() for sampler in samplers}
        self.lost: dict[str, str] = {}

    def open(self, scope: SampleScope) -> dict[str, str]:
        """Open every sampler that still reads; return metric -> why it cannot be read."""
        unavailable: dict[str, str] = {}
        for sampler in tuple(self._samplers):
            sampler.close()
            try:
                unavailable.update(sampler.open(scope))
            except SamplerError as error:
                self._lose(sampler, error)
        return unavailable

    def read(self, group: Group) -> dict[str, int]:
        """Read every sampler once; one that fails loses its metrics and the rest goes on."""
        values: dict[str, int] = {}
        for sampler in tuple(self._samplers):
            try:
                read = sampler.read(group)
            except SamplerError as error:
                self._lose(sampler, error)
                continue
            self._seen[id(sampler)].update(read)
            values.update(read)
        # A lost metric stays lost: values that come back later would hide the gap.
        for metric in self.lost:
            values.pop(metric, None)
        return values

    def capacities(self) -> dict[str, int]:
        found = [sampler.capacities() for sampler in self._samplers if isinstance(sampler, HasCapacities)]
        return {metric: total for totals in found for metric, total in totals.items()}

    def notes(self) -> list[str]:
        return [note for sampler in self._samplers for note in sampler.notes()]

    def close(self) -> None:
        for sampler in self._samplers:
            sampler.close()

    def _lose(self, sampler: Sampler, error: SamplerError) -> None:
        for metric in sorted(error.metrics or self._seen[id(sampler)] or sampler.quanta()):
            self.lost.setdefault(metric, "; ".join(filter(None, (error.message, error.hint))))
        if not error.metrics:
            self._samplers.remove(sampler)
            sampler.close()


class Sampling:
    """Reads all samplers; safe to call from several threads.

    Args:
        samplers: Not yet open.
        clock_ns: Nanoseconds since the run's start, monotonic.
        deliver: Called on the sampling thread with blocks of samples, metric -> [(t_ns, value)], about once a second.
        wait_s: Waits that many seconds between the readings of a settle window.
    """

    def __init__(
        self,
        samplers: Sequence[Sampler],
        clock_ns: Callable[[], int],
        deliver: Deliver,
        *,
        wait_s: Callable[[float], object] = time.sleep,
    ) -> None:
        self._panel = Panel(samplers)
        self._clock_ns = clock_ns
        self._deliver = deliver
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._blocks = Blocks()
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._is_settling = False
        self._taken = 0
        self._missed = 0

    def open(self, scope: SampleScope) -> dict[str, str]:
        """Open the samplers, again after every start of a server; return metric -> why it cannot be read."""
        with self._lock:
            return self._panel.open(scope)

    def read(self, group: Group) -> dict[str, int]:
        """Read now, in the caller's thread; a metric that cannot be read is absent."""
        self._raise_failure()
        with self._lock:
            return self._panel.read(group)

    def capacities(self) -> dict[str, int]:
        """Metric -> total bytes, of the memory that can run out."""
        with self._lock:
            return self._panel.capacities()

    def lost(self) -> dict[str, str]:
        """Metrics that were there and can no longer be read, with the reason."""
        with self._lock:
            return dict(self._panel.lost)

    def notes(self) -> list[str]:
        """What a reader should know of what is read, such as who else uses the GPU."""
        with self._lock:
            return self._panel.notes()

    def missed_note(self) -> str | None:
        """Say how many readings of the thread were missed so far; None: none."""
        with self._lock:
            taken, missed = self._taken, self._missed
        return f"the sampling thread missed {missed} of {taken + missed} readings" if missed else None

    # --- settle window ---------------------------------------------------------------------------

    def settle(self, sample_count: int, at_most_s: float) -> Settled:
        """Read every 10 ms until the last readings of every governing metric lie within one quantum.

        The sampling thread rests meanwhile; what it would have read is not counted as missed.

        Args:
            sample_count: How many last readings must agree.
            at_most_s: Longest time between the first and the last reading, in seconds.
        """
        self._is_settling = True
        try:
            return self._read_until_settled(_Window(sample_count), round(at_most_s * _SECOND_NS))
        finally:
            self._is_settling = False

    def _read_until_settled(self, window: _Window, at_most_ns: int) -> Settled:
        started_ns = due_ns = self._clock_ns()
        while True:
            window.add(self._clock_ns(), self.read(Group.ALL))
            # Where a reading takes longer than the interval, the next one follows at once.
            now_ns = self._clock_ns()
            due_ns = max(due_ns + SETTLE_INTERVAL_NS, now_ns)
            if window.has_settled() or due_ns - started_ns > at_most_ns:
                return window.result()
            self._wait_s((due_ns - now_ns) / _SECOND_NS)

    # --- sampling thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Start the sampling thread: the fast group 50 times a second, all metrics once a second."""
        if self._thread is None:
            self._is_stopping = False
            self._thread = threading.Thread(target=self._run, name="sampling", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the sampling thread and deliver the samples of the last, unfinished block."""
        if self._thread is not None:
            self._is_stopping = True
            self._thread.join()
            self._thread = None
            last_block = self._blocks.take()
            self._raise_failure()
            self._hand_over(last_block)

    def close(self) -> None:
        """Stop the sampling thread and close the samplers; harmless when repeated."""
        try:
            self.stop()
        finally:
            with self._lock:
                self._panel.close()

    def _run(self) -> None:
        try:
            self._sample_until_stopped()
        except BaseException as error:
            # Raised again in the caller's thread, at its next call.
            self._failure = error

    def _sample_until_stopped(self) -> None:
        started_ns = self._clock_ns()
        fast, slow = Pace(FAST_INTERVAL_NS, started_ns), Pace(SLOW_INTERVAL_NS, started_ns)
        while self._waits_until(fast.due_ns):
            if self._is_settling:
                fast.advance(self._clock_ns())
                continue
            is_slow_due = self._clock_ns() >= slow.due_ns
            self._sample_once(Group.ALL if is_slow_due else Group.FAST)
            now_ns = self._clock_ns()
            if is_slow_due:
                slow.advance(now_ns)
            self._missed += fast.advance(now_ns)

    def _waits_until(self, due_ns: int) -> bool:
        """Wait; False once the thread is to stop.

        Sleeping costs less than waiting for an event does, and who stops the thread waits for one interval at most.
        """
        if not self._is_stopping:
            time.sleep(max(0, due_ns - self._clock_ns()) / _SECOND_NS)
        return not self._is_stopping

    def _sample_once(self, group: Group) -> None:
        with self._lock:
            t_ns = self._clock_ns()
            values = self._panel.read(group)
            self._taken += 1
        self._hand_over(self._blocks.add(t_ns, values))

    def _hand_over(self, block: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        if block:
            self._deliver(block)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


class _Window:
    """The readings of a settle window as they come in."""

    def __init__(self, sample_count: int) -> None:
        self._count = sample_count
        self._times_ns: list[int] = []
        self._readings: list[Mapping[str, int]] = []

    def add(self, t_ns: int, values: Mapping[str, int]) -> None:
        self._times_ns.append(t_ns)
        self._readings.append(values)

    def has_settled(self) -> bool:
        """Judge by the metrics that the last readings have: one that is gone for good keeps nothing open."""
        if len(self._readings) < self._count:
            return False
        last = self._readings[-self._count :]
        present = {
            metric
            for reading in last
            for metric in reading
            if governs_settling(metric) and not may_be_somebody_elses(metric, reading)
        }
        return all(self._is_settled(metric, last) for metric in present)

    def result(self) -> Settled:
        metrics = sorted({metric for reading in self._readings for metric in reading})
        return Settled(
            times_ns=tuple(self._times_ns),
            values={metric: tuple(reading.get(metric) for reading in self._readings) for metric in metrics},
            settled=frozenset(metric for metric in metrics if self._is_settled(metric, self._readings)),
        )

    def _is_settled(self, metric: str, readings: Sequence[Mapping[str, int]]) -> bool:
        return has_settled([reading.get(metric) for reading in readings], self._count, settle_quantum(metric))
