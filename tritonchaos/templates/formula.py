"""NumPy expressions of a model template, evaluated without ever running them as Python."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tritonchaos.errors import TemplateError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FUNCTIONS: Final = (
    "abs",
    "ceil",
    "clip",
    "cos",
    "exp",
    "floor",
    "log",
    "matmul",
    "maximum",
    "minimum",
    "sin",
    "sqrt",
    "tanh",
    "transpose",
    "where",
)
_OPERATORS: Final[Mapping[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_LONGEST_TEXT: Final = 1000


@dataclass(frozen=True, slots=True)
class Formula:
    """An expression of named tensors: names, numbers, arithmetic, comparisons and a few NumPy functions.

    Attributes:
        names: The tensors that it uses.
    """

    text: str
    tree: ast.expr
    names: frozenset[str]

    def evaluate(self, tensors: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
        """Compute the value.

        Raises:
            TemplateError: The arithmetic is not possible, such as shapes that do not fit.
        """
        import numpy as np

        try:
            return np.asarray(_value(self.tree, tensors))
        except (ArithmeticError, TypeError, ValueError) as error:
            raise TemplateError(f"cannot compute {self.text!r}: {error}") from error


def parse_formula(text: str, names: Collection[str]) -> Formula:
    """Read an expression such as "2 * INPUT + 1" or "where(A > B, A, 0)".

    Args:
        names: The tensors it may use.

    Raises:
        TemplateError: Not an expression, or anything but names, numbers, arithmetic and `FUNCTIONS`.
    """
    try:
        if len(text) > _LONGEST_TEXT:
            raise ValueError(f"longer than {_LONGEST_TEXT} characters")
        tree = ast.parse(text, mode="eval").body
        _check(tree, names)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise TemplateError(
            f"the expression {text!r} cannot be used: {reason}",
            hint=f"allowed are {', '.join(sorted(names))}, numbers, + - * / // % **, comparisons and the functions "
            + ", ".join(FUNCTIONS),
        ) from error
    return Formula(text, tree, frozenset(_names(tree)))


def _check(node: ast.expr, names: Collection[str]) -> None:
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ValueError(f"found the name {node.id!r}")
        return
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise ValueError(f"found {node.value!r}, expected a number")
        return
    for part in _parts(node):
        _check(part, names)


def _names(node: ast.expr) -> set[str]:
    if isinstance(node, ast.Name):
        return {node.id}
    return set() if isinstance(node, ast.Constant) else set().union(*map(_names, _parts(node)))


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return [node.operand]
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise ValueError(f"found the function {node.func.id!r}")
        return node.args
    raise ValueError(f"found {ast.unparse(node)!r}")


def _value(node: ast.expr, tensors: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(node, ast.Name):
        return tensors[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    parts = [_value(part, tensors) for part in _parts(node)]
    if isinstance(node, ast.Call):
        return _call(node, parts)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow):
            # Integers without bound, as in 9**9**9, would never come to an end; floats overflow with an error.
            parts = [float(part) if isinstance(part, int) and abs(part) > 64 else part for part in parts]
        return _OPERATORS[type(node.op)](*parts)
    if isinstance(node, ast.Compare):
        return _OPERATORS[type(node.ops[0])](*parts)
    assert isinstance(node, ast.UnaryOp)
    return _OPERATORS[type(node.op)](*parts)


def _call(node: ast.Call, parts: list[Any]) -> Any:
    import numpy as np

    assert isinstance(node.func, ast.Name)
    return getattr(np, node.func.id)(*parts)
