from typing import Any

import numpy as np

gauss: np.ufunc
acceleration: np.ufunc
constraint_force: np.ufunc
nonideal_force: np.ufunc
augment: np.ufunc
independent_rows: np.ufunc
sensitivity: np.ufunc
zwang: np.ufunc

def build_info() -> dict[str, Any]: ...
def solve(
    M: object,
    Q: object,
    A: object,
    b: object,
    C: object | None,
    row_scale: object | None,
    rtol: float | None,
    ctol: float,
    b_atol: object,
    options: int,
    wanted: int,
    /,
) -> tuple[Any, ...] | None: ...

class Program:
    def __new__(
        cls,
        code: bytes,
        constants: bytes,
        registers: int,
        inputs: int,
        outputs: int,
        shapes: bytes,
        cores: bytes,
        sparse: bytes,
        fixed: tuple[bytes | None, ...],
        /,
    ) -> Program: ...
    def evaluate(self, *arguments: object) -> tuple[Any, ...] | None: ...
    def solve(self, *arguments: object) -> tuple[Any, ...] | None: ...
