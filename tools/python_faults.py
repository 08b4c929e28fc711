"""List the small faults that can be planted in a Python file: one changed operator, number or statement each."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

Edit = tuple[int, str, str]  # the offset in characters, what is there, and what may replace it

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "reversed": "list"}
# Where a fault changes no behaviour that a test could see: annotations, texts, imports, messages of errors.
SILENT = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Raise, ast.Assert, ast.arg)


def python_edits(text: str) -> Iterator[Edit]:
    """Yield each fault for the Python file `text`."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for node in loud_nodes(ast.parse(text)):
        for place, new in variants(node):
            column = len(lines[place.lineno - 1].encode()[: place.col_offset].decode())
            yield starts[place.lineno - 1] + column, ast.get_source_segment(text, place) or "", new


def loud_nodes(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the expressions and statements below `node` in which a fault would show."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            named_type = field in ("annotation", "returns", "decorator_list", "bases")
            if named_type or not isinstance(child, ast.AST) or isinstance(child, SILENT):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from loud_nodes(child)


def variants(node: ast.expr | ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield what may be replaced in `node`, and by what. Names keep their values: no fault is a mere NameError."""
    match node:
        case ast.Compare(ops=operators):
            for i, operator in enumerate(operators):
                swapped = SWAPS[type(operator)]()
                yield node, changed(node, ops=[*operators[:i], swapped, *operators[i + 1 :]])
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPS:
            yield node, changed(node, op=SWAPS[type(op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, str(value + 1)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield node, changed(node, func=ast.Name(NAMES[name]))
        case _:
            yield from control_variants(node)


def control_variants(node: ast.expr | ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield the same for conditions that are no comparison, and for statements that can be left out."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if isinstance(test, ast.Name | ast.Attribute | ast.Call):
                yield test, f"(not {ast.unparse(test)})"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield node, "return None"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Expr(value=ast.Call()):
            yield node, "pass"
        case ast.Continue() | ast.Break() | ast.Delete():
            yield node, "pass"


def changed(node: ast.expr | ast.stmt, **fields: object) -> str:
    """Return the source of a copy of `node` with other `fields`."""
    other = copy.copy(node)
    for field, value in fields.items():
        setattr(other, field, value)
    source = ast.unparse(other)
    return f"({source})" if isinstance(node, ast.expr) else source
