"""Child process of bench_kernel.py: runs in the environment that has pyudk, not in ours.

usage: python bench_pyudk.py SYSTEMS.npz, arrays M0, Q0, A0, b0, M1, ... of single systems.
Writes one JSON line of facts, then answers each line ``INDEX NUMBER`` on standard input with the
seconds per call of NUMBER calls on system INDEX. Needs only what pyudk itself depends on.
"""

import json
import os
import sys
import timeit
import warnings

import numpy as np
import pyudk
import scipy.linalg


def readme_call(system):
    """What the call in pyudk's README does."""
    try:
        pyudk.ideal_Constraint_force(*system)
    except TypeError as error:
        return f"raises TypeError: {error}"
    return "works"


def constraint_force(system):
    """``[Q_c, None]`` or ``[None, reason]``. The function has a first argument `self`, unused."""
    try:
        return [np.real(pyudk.ideal_Constraint_force(None, *system)).tolist(), None]
    except (ValueError, TypeError, ArithmeticError) as error:
        return [None, f"{type(error).__name__}: {error}"]


def main():
    # The answers keep the pipe for themselves: SciPy prints remarks on matrix powers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")

    def say(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    data = np.load(sys.argv[1])
    count = len(data.files) // 4
    systems = [tuple(data[f"{name}{i}"] for name in "MQAb") for i in range(count)]
    facts = {
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "readme_call": readme_call(systems[0]),
        "forces": [constraint_force(system) for system in systems],
    }
    say(facts)
    timers = []
    for M, Q, A, b in systems:
        names = {"f": pyudk.ideal_Constraint_force, "M": M, "Q": Q, "A": A, "b": b}
        timers.append(timeit.Timer("f(None, M, Q, A, b)", globals=names))
    for line in sys.stdin:
        index, number = map(int, line.split())
        say(timers[index].timeit(number) / number)


if __name__ == "__main__":
    main()
