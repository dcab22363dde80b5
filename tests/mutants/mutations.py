"""The mutants of a module: small changes of its source that a test should notice."""

import ast
from dataclasses import dataclass
from pathlib import Path

COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
ARITHMETIC = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
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

    def source(self) -> bytes:
        """Return the module with this change."""
        data = self.path.read_bytes()
        return data[: self.start] + self.after.encode() + data[self.end :]

    def __str__(self):
        return f"{self.path}:{self.line}: {self.before} -> {self.after} | {self.text}"


class Finder(ast.NodeVisitor):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path.read_bytes()
        self.lines = self.data.splitlines(keepends=True)
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line))
        self.found: list[Mutant] = []

    def span(self, node):
        start = self.offsets[node.lineno - 1] + node.col_offset
        return start, self.offsets[node.end_lineno - 1] + node.end_col_offset

    def add(self, start, end, after):
        line = self.data.count(b"\n", 0, start) + 1
        before = self.data[start:end].decode()
        text = self.lines[line - 1].decode().strip()
        self.found.append(Mutant(self.path, start, end, before, after, line, text))

    def between(self, left, right, old, new):
        """Replace the operator between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        place = self.data.find(old.encode(), start, end)
        if place >= 0:
            self.add(place, place + len(old), new)

    def visit_Compare(self, node):
        operands = [node.left, *node.comparators]
        for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
            self.between(left, right, *COMPARISONS[type(op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, *words)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            start = self.span(node)[0]
            self.add(start, start + len("not "), "")
        self.generic_visit(node)

    def visit_BinOp(self, node):
        if type(node.op) in ARITHMETIC:
            self.between(node.left, node.right, *ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        if isinstance(node.op, (ast.Add, ast.Sub)):
            words = ("+=", "-=") if isinstance(node.op, ast.Add) else ("-=", "+=")
            self.between(node.target, node.value, *words)
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, bool):
            self.add(*self.span(node), str(not node.value))
        elif isinstance(node.value, (int, float)):
            self.add(*self.span(node), repr(node.value + 1))

    def visit_Return(self, node):
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self.add(*self.span(node.value), "None")
        self.generic_visit(node)

    def visit_Expr(self, node):
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if not isinstance(value, ast.Call):
            return
        if (
            ast.unparse(value.func).split(".")[-2:-1]
            and ast.unparse(value.func).split(".")[-2] in LOGS
        ):
            return
        self.add(*self.span(node), "pass")
        self.generic_visit(node)

    def visit_Continue(self, node):
        self.add(*self.span(node), "break")

    def visit_Break(self, node):
        self.add(*self.span(node), "continue")

    def visit_If(self, node):
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)

    def visit_FunctionDef(self, node):
        if node.name in NOT_MUTATED:
            return
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - as ast calls it

    def visit_ClassDef(self, node):
        for part in node.body:
            self.visit(part)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)


def mutants_of(path: Path) -> list[Mutant]:
    """Return the mutants of a module in the order of its lines."""
    finder = Finder(path)
    finder.visit(ast.parse(finder.data))
    return sorted(finder.found, key=lambda mutant: (mutant.start, mutant.after))
