from __future__ import annotations

import numpy as np
import pytest

from tritonchaos.errors import TemplateError
from tritonchaos.templates.formula import parse_formula

A = np.array([1.0, -2.0, 3.0], dtype=np.float32)
B = np.array([2.0, 2.0, 2.0], dtype=np.float32)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A", A),
        ("2 * A + 1", 2 * A + 1),
        ("-A ** 2 / B", -(A**2) / B),
        ("maximum(abs(A), B)", np.maximum(np.abs(A), B)),
        ("where(A > 0, A, 0)", np.where(A > 0, A, 0)),
        ("clip(A, -1, 1) % 2 // 1", np.clip(A, -1, 1) % 2 // 1),
    ],
)
def test_arithmetic_is_numpys(text: str, value: np.ndarray) -> None:
    computed = parse_formula(text, ["A", "B"]).evaluate({"A": A, "B": B})
    assert np.array_equal(computed, value)
    assert computed.dtype == np.float32


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "A.tofile('x')",
        "A[0]",
        "open",
        "fromfile(A)",
        "(lambda: 1)()",
        "[A for A in B]",
        "abs(A, out=B)",
        "'text'",
        "True",
        "A if B else A",
        "A @ B",
        "A < B < A",
        "A +",
        "",
        "+".join(["A"] * 2000),
    ],
)
def test_everything_else_is_refused_when_read(text: str) -> None:
    with pytest.raises(TemplateError, match="cannot be used"):
        parse_formula(text, ["A", "B"])


def test_a_tower_of_powers_comes_to_an_end() -> None:
    with pytest.raises(TemplateError, match="cannot compute"):
        parse_formula("9 ** 9 ** 9 ** 9", []).evaluate({})


def test_shapes_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(TemplateError, match="cannot compute 'A \\+ B'"):
        parse_formula("A + B", ["A", "B"]).evaluate({"A": A, "B": np.zeros(2)})
