"""`python -m tests.growth`: tries the growth test and the usual rules, prints the table, writes it into the docs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.growth.evaluation import QUICK, Sizes, evaluate
from tests.growth.tables import markdown, promises

DOCS = Path(__file__).parents[2] / "docs" / "growth-verdict.md"
BEGIN, END = "<!-- figures: written by `make growth` -->", "<!-- end of figures -->"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few series, and nothing is written")
    parser.add_argument("--seed", default="", help="instead of the hash of the growth package; nothing is written")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    figures = evaluate(QUICK if asked.quick else Sizes(), asked.seed, asked.processes)
    table = markdown(figures)
    print(table)
    for name in (*figures.false_leaks, *figures.missed):
        print(f"wrong: {name}", file=sys.stderr)
    if not asked.quick and not asked.seed:
        write(table, DOCS)
    return 0 if all(kept for _, _, kept in promises(figures)) else 1


def write(table: str, path: Path) -> None:
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
