"""What reports show, computed once: the results document, the notes, the headline and the post-unload table."""

from tritonchaos.summary.cases import Case, Outcome, duration_s, run_cases
from tritonchaos.summary.cycle_events import CycleEvents, at_position, cycle_counts, cycles_of
from tritonchaos.summary.finding_text import amount_text, finding_facts, finding_lines, growth_text, is_memory
from tritonchaos.summary.finished import FinishedRun, finish, followers
from tritonchaos.summary.finished_set import FinishedEntry, FinishedSet, set_of_one
from tritonchaos.summary.notes import variant_sentences
from tritonchaos.summary.table import LeftOut, PhaseCount, TableBlock, TableRow, reply_text
from tritonchaos.summary.texts import portable, printable, without_folders

__all__ = [
    "Case",
    "CycleEvents",
    "FinishedEntry",
    "FinishedRun",
    "FinishedSet",
    "LeftOut",
    "Outcome",
    "PhaseCount",
    "TableBlock",
    "TableRow",
    "amount_text",
    "at_position",
    "cycle_counts",
    "cycles_of",
    "duration_s",
    "finding_facts",
    "finding_lines",
    "finish",
    "followers",
    "growth_text",
    "is_memory",
    "portable",
    "printable",
    "reply_text",
    "run_cases",
    "set_of_one",
    "variant_sentences",
    "without_folders",
]
