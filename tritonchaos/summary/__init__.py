"""What reports show, computed once: the results document, the notes, the headline and the post-unload table."""

from tritonchaos.summary.finished import FinishedRun, finish
from tritonchaos.summary.notes import variant_sentences
from tritonchaos.summary.table import LeftOut, PhaseCount, TableBlock, TableRow, reply_text
from tritonchaos.summary.texts import portable, printable, without_folders

__all__ = [
    "FinishedRun",
    "LeftOut",
    "PhaseCount",
    "TableBlock",
    "TableRow",
    "finish",
    "portable",
    "printable",
    "reply_text",
    "variant_sentences",
    "without_folders",
]
