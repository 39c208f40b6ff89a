"""The worst assessment that counts wins, and each defect is told once."""

from __future__ import annotations

import pytest

from tests.builders import make_history
from tritonchaos.errors import ExitCode
from tritonchaos.verdict import Assessment, Finding, Status, judge, merge_findings


def assessment(status, *findings, counts=True):
    return Assessment("c", status, "why", findings=findings, counts=counts)


def finding(title="load ident grows by 3 MiB", **changes):
    return Finding(**{"kind": "leak", "checker": "c", "title": title} | changes)


def verdict_of(*assessments):
    return judge(make_history([]), [("c", lambda _: assessments)])


PASS, UNKNOWN = assessment(Status.PASS), assessment(Status.UNKNOWN)
FAIL = assessment(Status.FAIL, finding())


@pytest.mark.parametrize(
    ("assessments", "status", "exit_code"),
    [
        ((PASS,), Status.PASS, ExitCode.PASS),
        ((PASS, UNKNOWN), Status.UNKNOWN, ExitCode.INCONCLUSIVE),
        ((UNKNOWN, FAIL, PASS), Status.FAIL, ExitCode.FINDINGS),
        ((), Status.UNKNOWN, ExitCode.INCONCLUSIVE),
        ((PASS, assessment(Status.UNKNOWN, counts=False)), Status.PASS, ExitCode.PASS),
        ((assessment(Status.PASS, counts=False),), Status.UNKNOWN, ExitCode.INCONCLUSIVE),
        ((PASS, assessment(Status.FAIL, finding(counts=False), counts=False)), Status.PASS, ExitCode.PASS),
    ],
)
def test_fail_beats_unknown_beats_pass(assessments, status, exit_code):
    verdict = verdict_of(*assessments)
    assert verdict.status is status
    assert verdict.exit_code() is exit_code


def test_a_known_finding_counts_unless_it_is_accepted():
    verdict = verdict_of(PASS, assessment(Status.FAIL, finding(known="https://example.org/1")))
    assert verdict.exit_code() is ExitCode.FINDINGS
    assert verdict.exit_code(accept_known=True) is not ExitCode.FINDINGS


def test_a_checker_that_raises_is_unknown_and_hides_nothing():
    def broken(history):
        raise ZeroDivisionError("half a cycle")

    verdict = judge(make_history([]), [("broken", broken), ("c", lambda _: [FAIL])])
    assert [a.status for a in verdict.assessments] == [Status.UNKNOWN, Status.FAIL]
    assert "ZeroDivisionError: half a cycle" in verdict.assessments[0].reason
    assert verdict.exit_code() is ExitCode.FINDINGS


def test_a_failed_assessment_needs_a_finding():
    with pytest.raises(ValueError, match="needs a finding"):
        assessment(Status.FAIL)


def test_a_finding_has_one_of_the_known_kinds():
    with pytest.raises(ValueError, match="surprise"):
        finding(kind="surprise")


def test_the_identity_of_a_finding_leaves_numbers_out():
    assert finding("grows by 3.5 MiB in cycle 7").id == finding("grows by 12 MiB in cycle 80").id
    assert finding().id != finding(step="load other").id
    assert finding().id != finding(metric="host_rss_bytes").id


def test_sightings_of_one_defect_are_counted_and_the_first_is_kept():
    merged = merge_findings([finding("grows by 1 MiB"), finding("shrinks"), finding("grows by 2 MiB")])
    assert [(f.title, f.occurrences) for f in merged] == [("grows by 1 MiB", 2), ("shrinks", 1)]


@pytest.mark.parametrize(
    ("title", "same"),
    [
        ("grows by 900 KiB per cycle (control: 812 B)", "grows by 1.02 MiB per cycle (control: 1.2 KiB)"),
        ("slow: 58 s", "slow: 1 min 02 s"),
        ("slow: 7 ms", "slow: 1.2 s"),
    ],
)
def test_a_defect_is_the_same_one_whatever_the_units_of_its_amounts(title: str, same: str) -> None:
    assert finding(title).id == finding(same).id
    assert finding(title).id != finding(f"{title} after the restore").id
