"""A comparison as JUnit cases: scenario = suite, row = case."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from tritonchaos.comparing.records import Comparison, Outcome, Row
from tritonchaos.summary import printable, without_folders

if TYPE_CHECKING:
    from junitparser import TestCase


def document(comparison: Comparison) -> bytes:
    """Build the file; red where the exit code is not 0: worse and new are failures, what cannot be told an error."""
    from junitparser import JUnitXml, TestSuite

    xml = JUnitXml(_text(f"{comparison.candidate.name} against {comparison.base.name}"))
    for scenario in dict.fromkeys(row.scenario for row in comparison.rows):
        suite = TestSuite(_text(scenario))
        suite.add_property("headline", _text(comparison.headline))
        suite.add_testcases([_case(row) for row in comparison.rows if row.scenario == scenario])
        xml.append(suite)
    xml.update_statistics()
    written = io.BytesIO()
    xml.write(written, pretty=True)
    return written.getvalue()


def _case(row: Row) -> TestCase:
    from junitparser import Error, Failure, Skipped, TestCase

    case = TestCase(_text(row.about), _text(f"compare.{row.scenario}"))
    told = f"{row.outcome.value}: base {row.base or '-'}, candidate {row.candidate or '-'}"
    told = _text(f"{told}; {row.why}" if row.why else told)
    is_worse = row.outcome in (Outcome.WORSE, Outcome.NEW)
    if row.decides and (is_worse or row.outcome is Outcome.CANNOT_TELL):
        result = (Failure if is_worse else Error)(told, row.outcome.value)
        result.text = told
        case.result = [result]
    elif row.outcome is Outcome.CANNOT_TELL or is_worse:
        case.result = [Skipped(told, row.outcome.value)]
    else:
        case.system_out = told
    return case


def _text(text: str) -> str:
    return printable(without_folders(text))
