"""Expressions as a graph of scalar operations: built once, differentiated exactly, never evaluated
here.

A node is a whole number; it stands for an operation on earlier nodes, a constant or an input.
Equal expressions are the same node, operations on constants are carried out, and zeros and ones
vanish, so that derivatives stay as small as the functions and structural zeros are known. A graph
only grows: programs that are derived from each other share one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["OPERATIONS", "Graph", "Operation"]


@dataclass(slots=True, frozen=True)
class Operation:
    """Name, number of operands, how it is written, and its value on numbers."""

    name: str
    arity: int
    text: str
    latex: str
    value: Callable[..., float]


def _sign(x: float) -> float:
    return x if x == 0 or math.isnan(x) else math.copysign(1.0, x)


def _divide(x: float, y: float) -> float:
    if y == 0:
        raise ZeroDivisionError
    return x / y


# The position is the code of the operation in csrc/core/gm_program.h.
OPERATIONS = (
    Operation("constant", 0, "", "", float),
    Operation("input", 0, "", "", float),
    Operation("store", 1, "", "", float),
    Operation("neg", 1, "-{0}", "-{0}", lambda x: -x),
    Operation("abs", 1, "abs({0})", r"\left|{0}\right|", abs),
    Operation("sign", 1, "sign({0})", r"\operatorname{{sign}}\left({0}\right)", _sign),
    Operation("sqrt", 1, "sqrt({0})", r"\sqrt{{{0}}}", math.sqrt),
    Operation("exp", 1, "exp({0})", r"e^{{{0}}}", math.exp),
    Operation("log", 1, "log({0})", r"\ln\left({0}\right)", math.log),
    Operation("sin", 1, "sin({0})", r"\sin\left({0}\right)", math.sin),
    Operation("cos", 1, "cos({0})", r"\cos\left({0}\right)", math.cos),
    Operation("tan", 1, "tan({0})", r"\tan\left({0}\right)", math.tan),
    Operation("arcsin", 1, "arcsin({0})", r"\arcsin\left({0}\right)", math.asin),
    Operation("arccos", 1, "arccos({0})", r"\arccos\left({0}\right)", math.acos),
    Operation("arctan", 1, "arctan({0})", r"\arctan\left({0}\right)", math.atan),
    Operation("sinh", 1, "sinh({0})", r"\sinh\left({0}\right)", math.sinh),
    Operation("cosh", 1, "cosh({0})", r"\cosh\left({0}\right)", math.cosh),
    Operation("tanh", 1, "tanh({0})", r"\tanh\left({0}\right)", math.tanh),
    Operation("add", 2, "{0} + {1}", "{0} + {1}", lambda x, y: x + y),
    Operation("sub", 2, "{0} - {1}", "{0} - {1}", lambda x, y: x - y),
    Operation("mul", 2, "{0}*{1}", r"{0}\,{1}", lambda x, y: x * y),
    Operation("div", 2, "{0}/{1}", r"\frac{{{0}}}{{{1}}}", _divide),
    Operation("pow", 2, "{0}**{1}", "{{{0}}}^{{{1}}}", math.pow),
    Operation(
        "arctan2", 2, "arctan2({0}, {1})", r"\operatorname{{atan2}}\left({0}, {1}\right)",
        math.atan2,
    ),
    Operation("minimum", 2, "minimum({0}, {1})", r"\min\left({0}, {1}\right)", min),
    Operation("maximum", 2, "maximum({0}, {1})", r"\max\left({0}, {1}\right)", max),
    Operation("less", 2, "{0} < {1}", "{0} < {1}", lambda x, y: float(x < y)),
    Operation("less_equal", 2, "{0} <= {1}", r"{0} \le {1}", lambda x, y: float(x <= y)),
    Operation("equal", 2, "{0} == {1}", "{0} = {1}", lambda x, y: float(x == y)),
    Operation(
        "where", 3, "where({0}, {1}, {2})",
        r"\begin{{cases}}{1} & {0}\\{2} & \text{{else}}\end{{cases}}",
        lambda c, x, y: x if c else y,
    ),
)  # fmt: skip
CODE = {operation.name: code for code, operation in enumerate(OPERATIONS)}
CONSTANT, INPUT = CODE["constant"], CODE["input"]
NEG, ABS, SIGN, SQRT, EXP, LOG = (CODE[k] for k in ("neg", "abs", "sign", "sqrt", "exp", "log"))
SIN, COS, TAN, SINH, COSH, TANH = (CODE[k] for k in ("sin", "cos", "tan", "sinh", "cosh", "tanh"))
ASIN, ACOS, ATAN, ATAN2 = (CODE[k] for k in ("arcsin", "arccos", "arctan", "arctan2"))
ADD, SUB, MUL, DIV, POW = (CODE[k] for k in ("add", "sub", "mul", "div", "pow"))
MIN, MAX, LESS, LESS_EQUAL, EQUAL = (
    CODE[k] for k in ("minimum", "maximum", "less", "less_equal", "equal")
)
WHERE = CODE["where"]
_COMMUTES = frozenset({ADD, MUL, MIN, MAX, EQUAL})
_LARGEST_POWER = 64


class Graph:
    """Nodes of one function and of all that is derived from it."""

    __slots__ = ("_known", "arguments", "inputs", "nodes", "values")

    def __init__(self) -> None:
        # (code, operands...) of each node; values holds the number of a constant
        self.nodes: list[tuple[int, ...]] = []
        self.values: list[float] = []
        self._known: dict[tuple[object, ...], int] = {}
        # size of each argument, and the argument and place of each input node
        self.arguments: list[int] = []
        self.inputs: dict[int, tuple[int, int]] = {}

    # -------------------------------------------------------------- making nodes

    def constant(self, x: float) -> int:
        """The node of a number."""
        # zeros of either sign are one: they are the absence of a term
        key = (CONSTANT, x + 0.0 if x == x else "nan")
        found = self._known.get(key)
        return self._new(key, (CONSTANT,), float(x) + 0.0) if found is None else found

    def argument(self, size: int) -> list[int]:
        """Nodes of a new argument of the function, one for each of its numbers."""
        self.arguments.append(0)
        return [self.extend(len(self.arguments) - 1) for _ in range(size)]

    def extend(self, index: int) -> int:
        """The node of one more number of an argument."""
        place = self.arguments[index]
        self.arguments[index] += 1
        node = self._new((INPUT, index, place), (INPUT,), 0.0)
        self.inputs[node] = (index, place)
        return node

    def _new(self, key: tuple[object, ...], node: tuple[int, ...], value: float) -> int:
        made = len(self.nodes)
        self._known[key] = made
        self.nodes.append(node)
        self.values.append(value)
        return made

    def number(self, node: int) -> float | None:
        """The value of a node that is a constant, None for others."""
        return self.values[node] if self.nodes[node][0] == CONSTANT else None

    def is_zero(self, node: int) -> bool:
        """Whether a node is the constant 0: a structural zero."""
        return self.nodes[node][0] == CONSTANT and self.values[node] == 0.0

    def apply(self, code: int, *operands: int) -> int:
        """The node of an operation, simplified."""
        if code in _COMMUTES and operands[0] > operands[1]:
            operands = (operands[1], operands[0])
        key = (code, *operands)
        found = self._known.get(key)
        if found is not None:
            return found
        numbers = [self.number(i) for i in operands]
        simple = self._simplified(code, operands, numbers)
        if simple is None and None not in numbers:
            try:
                simple = self.constant(OPERATIONS[code].value(*numbers))
            except (ArithmeticError, ValueError):
                simple = None  # left to run time, where it is inf or nan
        if simple is not None:
            self._known[key] = simple
            return simple
        return self._new(key, key, 0.0)

    def _simplified(
        self, code: int, operands: tuple[int, ...], numbers: list[float | None]
    ) -> int | None:
        """A smaller equal node, if there is one."""
        if code == WHERE:
            return self._simple_where(operands, numbers)
        x = operands[0]
        a = numbers[0]
        if len(operands) == 1:
            if code == NEG and self.nodes[x][0] == NEG:
                return self.nodes[x][1]
            if code == NEG and self.nodes[x][0] == SUB:
                return self.sub(self.nodes[x][2], self.nodes[x][1])
            if code == ABS and self.nodes[x][0] in (NEG, ABS):
                return self.apply(ABS, self.nodes[x][1])
            return None
        y, b = operands[1], numbers[1]
        if code == ADD:
            if a == 0:
                return y
            if b == 0:
                return x
            if self.nodes[y][0] == NEG:
                return self.sub(x, self.nodes[y][1])
            if self.nodes[x][0] == NEG:
                return self.sub(y, self.nodes[x][1])
        elif code == SUB:
            if b == 0:
                return x
            if a == 0:
                return self.neg(y)
            if x == y:
                return self.constant(0.0)
            if self.nodes[y][0] == NEG:
                return self.add(x, self.nodes[y][1])
        elif code == MUL:
            return self._simple_product(x, y, a, b)
        elif code == DIV:
            if a == 0 and b != 0:
                return x
            if b == 1:
                return x
            if b == -1:
                return self.neg(x)
            if self.nodes[x][0] == NEG:
                return self.neg(self.div(self.nodes[x][1], y))
        elif code == POW and b is not None:
            return self._simple_power(x, b)
        elif code in (MIN, MAX) and x == y:
            return x
        return None

    def _simple_product(self, x: int, y: int, a: float | None, b: float | None) -> int | None:
        for number, node, other in ((a, x, y), (b, y, x)):
            if number == 0:
                return node
            if number == 1:
                return other
            if number == -1:
                return self.neg(other)
        for node, other in ((x, y), (y, x)):
            if self.nodes[node][0] == NEG:
                return self.neg(self.mul(self.nodes[node][1], other))
        # a number times (a number times something)
        for number, other in ((a, y), (b, x)):
            if number is not None and self.nodes[other][0] == MUL:
                for inner, rest in (self.nodes[other][1:], self.nodes[other][:0:-1]):
                    factor = self.number(inner)
                    # powers of two only: other products would round differently
                    if factor is not None and math.frexp(abs(factor))[0] == 0.5:
                        return self.mul(self.constant(number * factor), rest)
        return None

    def _simple_power(self, x: int, exponent: float) -> int | None:
        if exponent == 0:
            return self.constant(1.0)
        if exponent == 0.5:
            return self.apply(SQRT, x)
        if exponent != int(exponent) or abs(exponent) > _LARGEST_POWER:
            return None
        if exponent < 0:
            return self.div(self.constant(1.0), self._power(x, int(-exponent)))
        return self._power(x, int(exponent))

    def _power(self, x: int, exponent: int) -> int:
        if exponent == 1:
            return x
        half = self._power(x, exponent // 2)
        square = self.mul(half, half)
        return self.mul(square, x) if exponent % 2 else square

    def _simple_where(self, operands: tuple[int, ...], numbers: list[float | None]) -> int | None:
        if operands[1] == operands[2]:
            return operands[1]
        if numbers[0] is not None:
            return operands[1] if numbers[0] else operands[2]
        return None

    def add(self, x: int, y: int) -> int:
        return self.apply(ADD, x, y)

    def sub(self, x: int, y: int) -> int:
        return self.apply(SUB, x, y)

    def mul(self, x: int, y: int) -> int:
        return self.apply(MUL, x, y)

    def div(self, x: int, y: int) -> int:
        return self.apply(DIV, x, y)

    def neg(self, x: int) -> int:
        return self.apply(NEG, x)

    def total(self, terms: Iterable[int]) -> int:
        """The sum of nodes, from left to right."""
        whole = self.constant(0.0)
        for term in terms:
            whole = self.add(whole, term)
        return whole

    # -------------------------------------------------------------- walking

    def ancestors(self, roots: Iterable[int]) -> list[int]:
        """All nodes that `roots` are made of, themselves included, in ascending order."""
        seen: set[int] = set()
        stack = list(roots)
        nodes = self.nodes
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(nodes[node][1:])
        return sorted(seen)

    def _partials(self, node: int) -> list[tuple[int, Callable[[int], int]]]:
        """Operands of a node that it depends on, each with g -> g times the partial derivative."""
        code, *operands = self.nodes[node]
        mul, div, neg, constant = self.mul, self.div, self.neg, self.constant
        x = operands[0] if operands else node
        if code == ADD:
            return [(x, lambda g: g), (operands[1], lambda g: g)]
        if code == SUB:
            return [(x, lambda g: g), (operands[1], neg)]
        if code == MUL:
            y = operands[1]
            return [(x, lambda g: mul(g, y)), (y, lambda g: mul(g, x))]
        if code == DIV:
            y = operands[1]
            return [(x, lambda g: div(g, y)), (y, lambda g: neg(div(mul(g, node), y)))]
        if code == NEG:
            return [(x, neg)]
        if code == SIN:
            return [(x, lambda g: mul(g, self.apply(COS, x)))]
        if code == COS:
            return [(x, lambda g: neg(mul(g, self.apply(SIN, x))))]
        if code == SQRT:
            return [(x, lambda g: div(mul(g, constant(0.5)), node))]
        if code == POW:
            return self._power_partials(node, x, operands[1])
        if code == EXP:
            return [(x, lambda g: mul(g, node))]
        if code == LOG:
            return [(x, lambda g: div(g, x))]
        if code == TAN:
            return [(x, lambda g: mul(g, self.add(constant(1.0), mul(node, node))))]
        if code in (ASIN, ACOS):
            # (1 - x)(1 + x) keeps its digits near 1
            one = constant(1.0)
            root = self.apply(SQRT, mul(self.sub(one, x), self.add(one, x)))
            return [(x, lambda g: div(g, root) if code == ASIN else neg(div(g, root)))]
        if code == ATAN:
            return [(x, lambda g: div(g, self.add(constant(1.0), mul(x, x))))]
        if code == SINH:
            return [(x, lambda g: mul(g, self.apply(COSH, x)))]
        if code == COSH:
            return [(x, lambda g: mul(g, self.apply(SINH, x)))]
        if code == TANH:
            # 1 - tanh² loses its digits where tanh is near 1
            cosh = self.apply(COSH, x)
            return [(x, lambda g: div(g, mul(cosh, cosh)))]
        if code == ABS:
            return [(x, lambda g: mul(g, self.apply(SIGN, x)))]
        if code == ATAN2:
            y = operands[1]
            square = self.add(mul(x, x), mul(y, y))
            return [
                (x, lambda g: div(mul(g, y), square)),
                (y, lambda g: neg(div(mul(g, x), square))),
            ]
        if code in (MIN, MAX):
            y = operands[1]
            first = self.apply(LESS_EQUAL, x, y) if code == MIN else self.apply(LESS_EQUAL, y, x)
            zero = constant(0.0)
            return [
                (x, lambda g: self.apply(WHERE, first, g, zero)),
                (y, lambda g: self.apply(WHERE, first, zero, g)),
            ]
        if code == WHERE:
            zero = constant(0.0)
            return [
                (operands[1], lambda g: self.apply(WHERE, x, g, zero)),
                (operands[2], lambda g: self.apply(WHERE, x, zero, g)),
            ]
        return []  # constants, inputs, sign and comparisons

    def _power_partials(self, node: int, x: int, y: int) -> list[tuple[int, Callable[[int], int]]]:
        exponent = self.number(y)
        if exponent is not None:
            lower = self.apply(POW, x, self.constant(exponent - 1))
            return [(x, lambda g: self.mul(g, self.mul(y, lower)))]
        one = self.constant(1.0)
        return [
            (x, lambda g: self.mul(g, self.mul(y, self.apply(POW, x, self.sub(y, one))))),
            (y, lambda g: self.mul(g, self.mul(node, self.apply(LOG, x)))),
        ]

    def _active(self, order: Sequence[int], inputs: set[int]) -> set[int]:
        """Those of the nodes that depend on `inputs`."""
        active = set()
        for node in order:
            if node in inputs or any(i in active for i in self.nodes[node][1:]):
                active.add(node)
        return active

    # -------------------------------------------------------------- derivatives

    def gradient(self, root: int, inputs: Sequence[int]) -> dict[int, int]:
        """The derivatives of one node by inputs, backwards, but for inputs without influence."""
        order = self.ancestors([root])
        active = self._active(order, set(inputs))
        adjoint = {root: self.constant(1.0)}
        for node in reversed(order):
            g = adjoint.get(node)
            if g is None or node not in active:
                continue
            for operand, times in self._partials(node):
                if operand in active:
                    term = times(g)
                    known = adjoint.get(operand)
                    adjoint[operand] = term if known is None else self.add(known, term)
        return {i: adjoint[i] for i in inputs if i in adjoint and i in active}

    def rate(self, roots: Sequence[int], directions: dict[int, int]) -> list[int]:
        """The derivatives of nodes along a direction, forwards: inputs -> their rates."""
        order = self.ancestors(roots)
        zero = self.constant(0.0)
        tangent = dict(directions)
        for node in order:
            if node in tangent or not self.nodes[node][1:]:
                continue
            terms = [
                times(tangent[operand])
                for operand, times in self._partials(node)
                if operand in tangent
            ]
            if terms:
                tangent[node] = self.total(terms)
        return [tangent.get(root, zero) for root in roots]

    # -------------------------------------------------------------- sizes of terms

    def sizes(self, roots: Sequence[int]) -> list[int]:
        """How large the terms are that are added up in nodes: their rounding in units of ε.

        The sum of absolute terms for sums, products of sums for products, and for other functions
        |f(x)| + |f'(x)| times the size of x: a first-order bound of the rounding error, up to the
        number of operations (Higham, Accuracy and Stability of Numerical Algorithms, chapter 3).
        """
        size: dict[int, int] = {}
        for node in self.ancestors(roots):
            code, *operands = self.nodes[node]
            if code in (ADD, SUB):
                size[node] = self.add(size[operands[0]], size[operands[1]])
            elif code == MUL:
                size[node] = self.mul(size[operands[0]], size[operands[1]])
            elif code == DIV:
                # |x|/|y| and what the size of y beyond |y| adds
                whole = self.apply(ABS, operands[1])
                ratio = self.div(size[operands[1]], whole)
                size[node] = self.mul(self.div(size[operands[0]], whole), ratio)
            elif code == NEG:
                size[node] = size[operands[0]]
            elif code == WHERE:
                size[node] = self.apply(WHERE, operands[0], size[operands[1]], size[operands[2]])
            elif code == INPUT or not operands:
                size[node] = self.apply(ABS, node)
            else:
                terms = [self.apply(ABS, node)]
                one = self.constant(1.0)
                for operand, times in self._partials(node):
                    slope = self.apply(ABS, times(one))
                    terms.append(self.mul(slope, size[operand]))
                size[node] = self.total(terms)
        return [size[root] for root in roots]
