"""The mutants of a module: small changes of its source that a test should notice."""

import ast
from dataclasses import dataclass
from pathlib import Path

PAIRS = [
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn),
    (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or), (ast.Continue, ast.Break),
]  # fmt: skip
OTHER = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
NOT_MUTATED = {"__repr__", "__hash__", "__sizeof__"}
LOGS = ("logger", "log", "_log")


@dataclass(frozen=True)
class Mutant:
    path: Path
    start: int
    """Offset in bytes of what is replaced."""
    end: int
    before: str
    after: str
    line: int
    text: str
    """The line of the source, stripped."""
    is_expression: bool

    def source(self) -> bytes:
        data = self.path.read_bytes()
        after = f"({self.after})" if self.is_expression else self.after
        return data[: self.start] + after.encode() + data[self.end :]

    def __str__(self):
        return f"{self.path}:{self.line}: {self.before} -> {self.after} | {self.text}"


def instead(node):  # noqa: C901 - one branch for each kind
    """Yield what is tried in place of a node."""
    match node:
        case ast.Compare(left, ops, comparators):
            for place, op in enumerate(ops):
                others = [*ops[:place], OTHER[type(op)](), *ops[place + 1 :]]
                yield ast.Compare(left, others, comparators)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(OTHER[type(op)](), values)
        case ast.BinOp(left, op, right) if type(op) in OTHER:
            yield ast.BinOp(left, OTHER[type(op)](), right)
        case ast.AugAssign(target, ast.Add() | ast.Sub() as op, value):
            yield ast.AugAssign(target, OTHER[type(op)](), value)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Await(ast.Call())):
            yield ast.Pass()
        case ast.Continue() | ast.Break():
            yield OTHER[type(node)]()


def nodes(node):
    """Yield what may be changed: no decorators, no types, nothing that is logged."""
    parts = ast.iter_child_nodes(node)
    match node:
        case ast.FunctionDef(name, arguments) | ast.AsyncFunctionDef(name, arguments):
            parts = [*arguments.defaults, *arguments.kw_defaults, *node.body]
            parts = [] if name in NOT_MUTATED else filter(None, parts)
        case ast.ClassDef():
            parts = node.body
        case ast.AnnAssign(value=value):
            parts = [value] if value else []
        case ast.If(test) if "TYPE_CHECKING" in ast.unparse(test):
            return
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name) | ast.Attribute(attr=name)))) if (
            name in LOGS
        ):
            return
    yield node
    for part in parts:
        yield from nodes(part)


def mutants_of(path: Path) -> list[Mutant]:
    """Return the mutants of a module in the order of its lines."""
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)

    def offset(line, column):
        return sum(map(len, lines[: line - 1])) + column

    found = []
    for node in nodes(ast.parse(data)):
        for other in instead(node):
            start = offset(node.lineno, node.col_offset)
            end = offset(node.end_lineno, node.end_col_offset)
            before, after = " ".join(data[start:end].decode().split()), ast.unparse(other)
            text = lines[node.lineno - 1].decode().strip()
            is_expression = isinstance(node, ast.expr)
            found.append(Mutant(path, start, end, before, after, node.lineno, text, is_expression))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.after))
