"""Command line: a worked example, and problems read from files.

``python -m gaussmech`` solves the two-mass pendulum on a massless rod and compares with
the formula as printed. ``python -m gaussmech solve FILE`` reads M, Q, A, b and
optionally C from .npz or JSON. Exit code 1: the problem has no answer; 2: the file or
the arguments are at fault.
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import kernel
from .errors import GaussmechError

REQUIRED = ("M", "Q", "A", "b")
KNOWN = (*REQUIRED, "C", "names")


class BadFile(Exception):
    """A file that cannot be read as a problem, or written to; the text says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m gaussmech",
        description="Constrained accelerations and constraint forces. "
        "Without a command: the two-mass pendulum as a worked example.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    solve = commands.add_parser(
        "solve",
        help="solve the problem in a file",
        description="Solve M qdd = Q + Q_c, A qdd = b for the arrays in FILE. Exit code 1: "
        "the problem has no answer; 2: the file is at fault.",
    )
    solve.add_argument("file", metavar="FILE", help=".npz or .json with M, Q, A, b[, C, names]")
    solve.add_argument("--output", metavar="OUT", help="write the result to OUT (.npz or .json)")
    solve.add_argument("--inconsistent", choices=("raise", "project"), default="raise")
    solve.add_argument("--indeterminate", choices=("raise", "minimum_norm"), default="raise")
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        print(two_mass_pendulum())
        return 0
    try:
        return _solve_file(arguments)
    except BadFile as error:
        print(f"gaussmech: {error}", file=sys.stderr)
        return 2


def _solve_file(arguments: argparse.Namespace) -> int:
    if arguments.output and Path(arguments.output).suffix not in (".npz", ".json"):
        raise BadFile(f"{arguments.output}: expected a name that ends in .npz or .json")
    problem = read_problem(Path(arguments.file))
    try:
        motion = kernel.solve(
            **problem,
            inconsistent=arguments.inconsistent,
            indeterminate=arguments.indeterminate,
        )
    except GaussmechError as error:
        print(f"gaussmech: {arguments.file}: {error}", file=sys.stderr)
        return 1
    except (TypeError, ValueError) as error:
        raise BadFile(f"{arguments.file}: {error}") from None
    if arguments.output:
        _write(Path(arguments.output), motion.to_dict())
    else:
        print(motion)
    return 0


def read_problem(path: Path) -> dict[str, Any]:
    """Return the arrays in a .npz or JSON file as keywords of `solve`."""
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                found: dict[str, Any] = dict(archive)
        elif path.suffix == ".json":
            found = json.loads(path.read_text(encoding="utf-8"))
        else:
            raise BadFile(f"{path}: expected a file that ends in .npz or .json")
    except FileNotFoundError:
        raise BadFile(f"{path}: no such file") from None
    except json.JSONDecodeError as error:
        raise BadFile(f"{path}: not JSON: {error}") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path}: not a text file in UTF-8") from None
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise BadFile(f"{path}: cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise BadFile(f"{path}: holds a {type(found).__name__}; expected an object with M, Q, A, b")
    missing = [name for name in REQUIRED if name not in found]
    if missing:
        here = ", ".join(found) or "nothing"
        raise BadFile(f"{path}: {', '.join(missing)} missing; it has {here}")
    unknown = [name for name in found if name not in KNOWN]
    if unknown:
        raise BadFile(f"{path}: {unknown[0]!r} is not known; expected {', '.join(KNOWN)}")
    for name in KNOWN[:5]:
        value = found.get(name)
        if isinstance(value, list):
            try:
                found[name] = np.array(value, dtype=float)
            except (TypeError, ValueError):
                raise BadFile(f"{path}: {name} is not a rectangular array of numbers") from None
    if isinstance(found["A"], np.ndarray) and found["A"].size == 0 and found["A"].ndim == 1:
        found["A"] = found["A"].reshape(0, np.shape(found["Q"])[-1])
    return found


def _write(path: Path, result: dict[str, Any]) -> None:
    try:
        if path.suffix == ".npz":
            np.savez(path, **result)
        else:
            plain = {name: np.asarray(value).tolist() for name, value in result.items()}
            path.write_text(json.dumps(_without_nan(plain), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{path}: cannot be written: {error}") from None


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: undefined numbers become null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and np.isnan(value) else value


def two_mass_pendulum() -> str:
    """Return the worked example as text: two masses on one massless rod through a pivot."""
    m1, m2, r1, r2, g = 1.0, 2.5, 0.4, 1.1, 9.81
    phi, phidot = 1.0, 2.0
    s, c = np.sin(phi), np.cos(phi)
    x1, y1, x2, y2 = r1 * s, -r1 * c, r2 * s, -r2 * c
    v1, v2 = r1 * phidot, r2 * phidot

    M = np.diag([m1, m1, m2, m2])
    Q = np.array([0.0, -m1 * g, 0.0, -m2 * g])
    A = np.array([[x1, y1, 0.0, 0.0], [0.0, 0.0, x2, y2], [y2, -x2, -y1, x1]])
    b = np.array([-(v1**2), -(v2**2), 0.0])
    names = {"rows": ["length 1", "length 2", "straight"], "coordinates": ["x1", "y1", "x2", "y2"]}
    motion = kernel.solve(M, Q, A, b, names=names)

    # the formula as printed: Q_c = M^1/2 (A M^-1/2)^+ (b - A M^-1 Q)
    root = np.sqrt(M)
    free = np.linalg.solve(M, Q)
    printed = root @ np.linalg.pinv(A @ np.linalg.inv(root)) @ (b - A @ free)
    # the equation of motion: (m1 r1^2 + m2 r2^2) phi'' + (m1 r1 + m2 r2) g sin phi = 0
    phidd = -(m1 * r1 + m2 * r2) * g * s / (m1 * r1**2 + m2 * r2**2)
    found = (motion.qdd[2:] @ [c, s]) / r2  # type: ignore[index]
    gap = float(np.abs(motion.Q_c - printed).max())
    return (
        f"Two masses, {m1:g} and {m2:g} kg, on one massless rod at {r1:g} and {r2:g} m from the "
        f"pivot;\nphi = {phi:g} rad from the vertical, phi' = {phidot:g} rad/s.\n\n{motion}\n\n"
        "angular acceleration\n"
        f"  kernel       {found:.12f} rad/s^2\n"
        f"  closed form  {phidd:.12f} rad/s^2   "
        "-(m1 r1 + m2 r2) g sin(phi) / (m1 r1^2 + m2 r2^2)\n"
        "constraint force against M^(1/2) (A M^(-1/2))^+ (b - A M^-1 Q) in NumPy\n"
        f"  largest difference {gap:.1e} N"
    )


if __name__ == "__main__":
    sys.exit(main())
