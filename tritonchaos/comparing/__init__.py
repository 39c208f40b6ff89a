"""Two runs, or two sets of runs, of the same scenarios: what is better, same, worse, new, fixed, or cannot be told."""

from tritonchaos.comparing.compare import compare
from tritonchaos.comparing.document import document
from tritonchaos.comparing.records import Comparison, Kind, Outcome, Row, SideFacts
from tritonchaos.comparing.writing import write_reports

__all__ = ["Comparison", "Kind", "Outcome", "Row", "SideFacts", "compare", "document", "write_reports"]
