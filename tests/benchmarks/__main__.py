"""`python -m tests.benchmarks` measures what tritonchaos costs and writes docs/benchmarks.md; nothing fails by time."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import measuring, scenarios
from tests.benchmarks.table import Row, page, section
from tritonchaos import __version__

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
_MIB = 1024**2
_HERE = "this machine"
_REMARKS = (
    "A bare loop is a process of its own: raw sockets, one kept connection, no checks beyond the status. It runs on "
    "the same server in the same run, in rounds that alternate with those of tritonchaos; the two medians of a round "
    "are compared, and the median over the rounds is shown, with the range in brackets. tritonchaos samples on while "
    "the bare loop runs.",
    "A cycle of both loops is load, 20 ms wait, unload, and looking at the index until the model is gone. The wait is "
    "there because an unload right after a load can crash Triton 2.51. Only the 20 ms from the first to the third "
    "reading of a settle window are taken off, and the table has both medians from before that.",
    "A cycle of tritonchaos is timed from its start to the start of the next one: steps, probes, readings, the settle "
    "window, the stopping rule and the commit to run.db are all in it. Its readings of `smaps_rollup`, which the "
    "kernel makes from every page of the server, are in it too and shown by themselves.",
    "The model is `identity`, variant `planted` (in the server's process, no GPU); for the sampling thread variant "
    "`python`, so that there is a stub. All usual checks are on.",
    "Docker: the same server build on this machine and in containers, in turns, each with a bare loop of its own "
    "over the way that tritonchaos takes. What that takes longer in a container is the container's own; the rest of "
    "what a cycle takes longer there is what tritonchaos adds.",
    "The load average is that of the last 15 minutes, at the end; where it is well above 1, other work shared the "
    "machine.",
    "Memory and processor time are those of the real `tritonchaos run`, read by a step that a plug-in adds. Processor "
    "time hardly depends on what else the machine does; the other times do.",
)


class _Bench:
    def __init__(self, folder: Path, arguments: argparse.Namespace) -> None:
        self._folder = folder
        self._arguments = arguments
        self.rows: list[Row] = []
        self.sections: dict[str, str] = {}
        self.versions = ""
        self.crashed = 0

    def say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def measure(self, part: str) -> None:
        """Measure one part and write its section, if there is anything to write."""
        self.rows, self.crashed = [], 0
        getattr(self, part)()
        if self.crashed:
            self.rows.append(Row("runs thrown away because the server crashed in them", str(self.crashed)))
        if self.rows:
            self.sections[_PARTS[part]] = section(_PARTS[part], self.rows, self.versions, os.getloadavg()[2])

    def run(self, text: str) -> measuring.Finished:
        finished = measuring.run(text, self._folder, self.say)
        self.crashed += finished.crashed_before
        facts = finished.history.facts
        self.versions = f"tritonchaos {__version__}, Triton {facts.target.get('triton_version', '?')}"
        return finished

    def cycle(self) -> None:
        rounds, count = self._arguments.rounds, self._arguments.cycles_per_round
        self.say(f"cycles: {rounds} rounds of {count}")
        finished = self.run(scenarios.cycles_beside_bare_loop(rounds, count))
        costs = measuring.cycle_costs(finished.history)
        added = [cost.added_ms for cost in costs]
        ratios = [cost.ours_ms / (cost.bare_ms + measuring.SETTLE_MS) for cost in costs]
        busy = measuring.engine_ms_per_cycle(finished.history, count)
        rollups = measuring.rollups_ms(finished.history)
        long, windows = measuring.long_windows(finished.history)
        shown = f"{rounds} rounds of {count}"
        self.rows += [
            Row(f"bare load/unload cycle ({shown})", _span([cost.bare_ms for cost in costs], "ms")),
            Row(f"cycle of tritonchaos ({shown})", _span([cost.ours_ms for cost in costs], "ms")),
            Row(
                "added per cycle: the second minus the first minus the settle's 20 ms",
                _span(added, "ms"),
                "< 5 ms",
                statistics.median(added) < 5,
            ),
            Row("ratio of a cycle to the bare one and 20 ms", _span(ratios, "")),
            Row("processor time of the engine's thread per cycle", _span(busy, "ms")),
            Row("one reading of the server's `smaps_rollup`, of which a cycle has five", _span(rollups, "ms")),
            Row("settle windows that needed more than three readings", f"{long} of {windows}"),
        ]

    def sampling(self) -> None:
        self.say("sampling thread")
        shares = []
        for _ in range(self._arguments.rounds):
            finished = self.run(scenarios.sampling_beside_stub(self._arguments.seconds * 2))
            before, after = measuring.looks(finished.history)
            span_ns = after.monotonic_ns - before.monotonic_ns
            shares.append(100 * (after.sampling_ns - before.sampling_ns) / span_ns)
        what = f"sampling thread with server and one stub, share of a core ({len(shares)} runs)"
        self.rows.append(Row(what, _span(shares, "%"), "< 2 %", statistics.median(shares) < 2))

    def start(self) -> None:
        count = 2 * self._arguments.rounds
        self.say("start")
        helps = measuring.help_times_s(count)
        firsts = measuring.first_cycle_times_s(count, self._folder, self.say)
        self.rows += [
            Row(f"`tritonchaos --help` ({count} runs)", _span(helps, "s"), "< 0.4 s", statistics.median(helps) < 0.4),
            Row(
                f"start of the process to first cycle ({count} runs)",
                _span(firsts, "s"),
                "< 1.5 s",
                statistics.median(firsts) < 1.5,
            ),
        ]

    def inference(self) -> None:
        self.say("inference")
        rounds = self._arguments.rounds
        finished = self.run(scenarios.inference_beside_bare_loop(rounds, self._arguments.seconds))
        rates = measuring.inference_rates(finished.history)
        self.rows += [
            Row(f"bare inference loop ({rounds} rounds)", _span([bare for _, bare in rates], "/s", digits=0)),
            Row(f"verified inference on a track ({rounds} rounds)", _span([ours for ours, _ in rates], "/s", digits=0)),
            Row("ratio of the two", _span([ours / bare for ours, bare in rates], "")),
        ]

    def many_cycles(self) -> None:
        count = self._arguments.cycles
        self.say(f"{count} cycles")
        finished = self.run(scenarios.many_cycles(count, 10))
        looks = measuring.looks(finished.history)
        rss = [look.rss_bytes / _MIB for look in looks]
        per_metric, metrics = measuring.store_bytes_per_cycle_and_metric(finished)
        first, last = (
            statistics.median(measuring.cycle_times_ns(finished.history, f"part_{part}")) / 1e6 for part in (1, 10)
        )
        grown = rss[-1] - rss[1]
        judged_s = (finished.ended_ns - looks[-1].monotonic_ns) / 1e9
        self.rows += [
            Row(
                f"memory of tritonchaos (RSS), sampled 11 times over {count} cycles",
                ", ".join(f"{value:.1f}" for value in rss) + " MiB",
                "flat",
                grown < max(1.0, 0.02 * rss[1]),
            ),
            Row(
                "its growth from the second sample to the last",
                f"{grown:.2f} MiB, {grown * _MIB / count:.0f} B per cycle",
            ),
            Row(
                f"run.db per cycle and metric ({metrics} metrics)",
                f"{per_metric:.0f} B",
                "< 150 B",
                per_metric < 150,
            ),
            Row(
                f"a cycle in the first and in the last {count // 10} cycles",
                f"{first:.2f} ms, {last:.2f} ms",
                "same",
                last < first * 1.1,
            ),
            Row("from the last cycle to the written reports", f"{judged_s:.1f} s"),
        ]

    def docker(self) -> None:
        """The same server build here and in a container, in turns."""
        engine = os.environ.get("TRITONCHAOS_TEST_ENGINE")
        if not engine:
            self.say("docker: $TRITONCHAOS_TEST_ENGINE names no engine, not measured")
            return
        image = {"image": "tritonchaos/tritonserver-cpu:2.51", "pull": "never", "engine": engine}
        targets = {
            _HERE: {"local": {}},
            "publish": {"docker": {**image, "network": "publish"}},
            "none": {"docker": {**image, "network": "none"}},
        }
        rounds, count = self._arguments.rounds, self._arguments.cycles_per_round
        self.say(f"docker: {rounds} rounds of {count} cycles on each of {', '.join(targets)}")
        took: dict[str, list[measuring.CycleCost]] = {name: [] for name in targets}
        for _ in range(rounds):
            for name, target in targets.items():
                took[name] += measuring.cycle_costs(self.run(scenarios.cycles_on(target, count)).history)
        here = took.pop(_HERE)
        shown = f"{rounds} rounds of {count}"
        self.rows += [
            Row(f"bare load/unload cycle, local ({shown})", _span([cost.bare_ms for cost in here], "ms")),
            Row(f"a cycle of tritonchaos on the local target ({shown})", _span([cost.ours_ms for cost in here], "ms")),
        ]
        for name, there in took.items():
            self.rows += _through_docker(name, list(zip(here, there, strict=True)))

    def write(self) -> None:
        text = page(list(_PARTS.values()), self.sections, _PAGE.read_text(encoding="utf-8"), _REMARKS)
        print(text)
        if self._arguments.write:
            _PAGE.write_text(text, encoding="utf-8")


def _through_docker(network: str, rounds: Sequence[tuple[measuring.CycleCost, measuring.CycleCost]]) -> list[Row]:
    """What a cycle takes longer through Docker, and whose that is.

    Args:
        rounds: (local, through Docker) of each round.
    """
    total = [there.ours_ms - here.ours_ms for here, there in rounds]
    servers = [there.bare_ms - here.bare_ms for here, there in rounds]
    ours = [all_of_it - of_server for all_of_it, of_server in zip(total, servers, strict=True)]
    what = f"the same through Docker, `network: {network}`, beyond that"
    return [
        Row(what, _span(total, "ms"), "< 2 ms", statistics.median(total) < 2),
        Row("- the container's own: a bare cycle there, beyond one on this machine", _span(servers, "ms")),
        Row("- added by tritonchaos: the rest", _span(ours, "ms")),
    ]


def _span(values: Sequence[float], unit: str, digits: int = 2) -> str:
    """Median and range."""
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} {unit}".strip() + f" ({low} to {high})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each comparison (default 5)")
    parser.add_argument("--cycles-per-round", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5, help="length of a round of inference (default 5)")
    parser.add_argument("--cycles", type=int, default=10_000, help="cycles of the long run (default 10000)")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=list(_PARTS), help="parts to measure")
    parser.add_argument("--no-write", dest="write", action="store_false", help="print the page, leave the file alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = _Bench(Path(folder), arguments)
        for part in arguments.only:
            bench.measure(part)
        bench.write()


# Method of `_Bench` -> title of its section.
_PARTS = {
    "cycle": "A cycle",
    "sampling": "The sampling thread",
    "start": "Start",
    "inference": "Inference",
    "many_cycles": "Many cycles",
    "docker": "Docker",
}

if __name__ == "__main__":
    main()
