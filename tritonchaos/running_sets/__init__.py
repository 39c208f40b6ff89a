"""Runs several scenarios, and the cells of those that vary, as one set with one exit code and one summary."""

from tritonchaos.running_sets.document import set_document
from tritonchaos.running_sets.planning import folder_names, plan
from tritonchaos.running_sets.records import Entry, Planned, SetRun
from tritonchaos.running_sets.reporting import report_set
from tritonchaos.running_sets.running import run_set, worst

__all__ = [
    "Entry",
    "Planned",
    "SetRun",
    "folder_names",
    "plan",
    "report_set",
    "run_set",
    "set_document",
    "worst",
]
