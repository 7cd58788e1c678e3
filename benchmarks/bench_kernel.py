"""The kernel against what one writes by hand: single calls and batches, as Markdown tables.

    python benchmarks/bench_kernel.py [--rounds N] [--sizes 6,3 12,6] [--batch 10000]
                                      [--family well graded:1e12] [--pyudk PYTHON]

All contenders of a size take turns in every round, each time is the minimum over the rounds,
BLAS has one thread. See README.md beside this file for what is measured and how.
"""

import os

# Before NumPy loads its BLAS: also valid where threadpoolctl is missing.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import importlib.metadata
import json
import math
import pathlib
import platform
import subprocess
import sys
import tempfile
import timeit
from functools import partial

import numpy as np
import scipy

try:
    import threadpoolctl
except ImportError:
    threadpoolctl = None
try:
    import gaussmech as gm
except ImportError:
    gm = None

import peers

SIZES = [(2, 1), (6, 3), (12, 6), (24, 12), (60, 30), (200, 100)]
FAMILIES = ["well", "graded:1e12"]
THREE = ("qdd", "Q_c", "multipliers")

# Largest relative 2-norm error of qdd, Q_c or multipliers that still counts as an answer: far
# above rounding in the well conditioned family; with masses graded over 1e12 the KKT solve, which
# is right, has up to 1e-9 in Q_c.
TOLERANCE = 1e-8

# Seconds that one sample lasts at least: far above the clock, caches warm after the first calls.
SAMPLE_SINGLE = 1e-3
SAMPLE_BATCH = 3e-3


# --- the systems ------------------------------------------------------------------------------


def make_batch(family, n, m, count, seed=1):
    """``M, Q, A, b`` of `count` systems: M = D^1/2 W D^1/2, W with eigenvalues 1..4 in a random
    orientation, D = 1 (well) or log-spaced 1..1/R and shuffled (graded:R)."""
    rng = np.random.default_rng([seed, n, m])
    M = np.broadcast_to(np.diag(np.linspace(1.0, 4.0, n)), (count, n, n)).copy()
    for _ in range(3):
        v = rng.uniform(-1, 1, (count, n))
        v /= np.linalg.norm(v, axis=-1, keepdims=True)
        M -= 2 * v[:, :, None] * (v[:, None, :] @ M)
        M -= 2 * (M @ v[:, :, None]) * v[:, None, :]
    M = (M + M.swapaxes(-1, -2)) / 2
    name, _, ratio = family.partition(":")
    if name == "graded":
        masses = np.broadcast_to(np.logspace(0, -math.log10(float(ratio)), n), (count, n))
        root = np.sqrt(rng.permuted(masses, axis=-1))
        M = M * (root[:, :, None] * root[:, None, :])
    Q, A, b = (rng.uniform(-1, 1, (count, *shape)) for shape in ((n,), (m, n), (m,)))
    return M, Q, A, b


def batch_count(n, batch):
    """Systems in a batch: fewer where one of them is large."""
    return max(1, batch if n < 60 else batch // 5 if n < 200 else batch // 100)


# --- timing -----------------------------------------------------------------------------------


def worst_error(answer, reference):
    """Largest relative 2-norm error over systems and over those of (qdd, Q_c, multipliers) that
    a contender gives (None where it does not)."""
    worst = 0.0
    for x, r in zip(answer, reference, strict=True):
        if x is not None:
            error = np.max(np.linalg.norm(x - r, axis=-1) / np.linalg.norm(r, axis=-1))
            worst = max(worst, math.inf if np.isnan(error) else float(error))
    return worst


def sampler(function, **arguments):
    """``number -> seconds per call`` of ``function(*arguments)``, without a call in between."""
    timer = timeit.Timer(f"f({', '.join(arguments)})", globals={"f": function, **arguments})
    return lambda number: timer.timeit(number) / number


def interleaved_minima(samplers, rounds, least):
    """Every contender once per round, the order rotating; the minimum of each."""
    number = {name: max(1, math.ceil(least / min(s(1), s(1)))) for name, s in samplers.items()}
    best = dict.fromkeys(samplers, math.inf)
    names = list(samplers)
    for r in range(rounds if names else 0):
        k = r % len(names)
        for name in names[k:] + names[:k]:
            best[name] = min(best[name], samplers[name](number[name]))
    return best


class Pyudk:
    """The child process in pyudk's own environment; answers one sample at a time."""

    def __init__(self, python, systems):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "systems.npz")
            arrays = {
                f"{k}{i}": v for i, s in enumerate(systems) for k, v in zip("MQAb", s, strict=True)
            }
            np.savez(file, **arrays)
            script = pathlib.Path(__file__).with_name("bench_pyudk.py")
            self.process = subprocess.Popen(
                [python, str(script), str(file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self.facts = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(
                "the pyudk process ended early: is pyudk installed for the interpreter given "
                "with --pyudk?"
            )
        return json.loads(line)

    def answer(self, index, M, Q):
        """Its constraint force, and the acceleration that belongs to it."""
        Q_c, reason = self.facts["forces"][index]
        if reason:
            raise ValueError(reason)
        return np.linalg.solve(M, Q + Q_c), np.array(Q_c), None

    def sampler(self, index):
        def sample(number):
            self.process.stdin.write(f"{index} {number}\n")
            self.process.stdin.flush()
            return self._answer()

        return sample

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# --- the two races ----------------------------------------------------------------------------


class Race:
    """Contenders of one size: those that answer are timed, those that are wrong are named."""

    def __init__(self, where, reference):
        self.where, self.reference = where, reference
        self.samplers, self.errors, self.remarks = {}, {}, {}

    def add(self, name, answer, sampler):
        """`answer` is called once for the check; an exception in it takes the contender out."""
        try:
            error = worst_error(answer(), self.reference)
        except (ValueError, TypeError, ArithmeticError) as reason:
            self.remarks[name] = f"{type(reason).__name__}: {reason}"
            return
        self.samplers[name], self.errors[name] = sampler, error
        if error > TOLERANCE:
            self.remarks[name] = f"wrong, off by {error:.1e}"

    def run(self, rounds, least, count=1):
        """Time all; the minima per system."""
        best = interleaved_minima(self.samplers, rounds, least)
        self.seconds = {name: seconds / count for name, seconds in best.items()}
        return self

    def time(self, name):
        mark = " wrong" if name in self.remarks else ""
        if name in self.seconds:
            return digits(self.seconds[name] * 1e6) + mark
        return "error" if mark else "–"

    def error(self, name):
        return f"{self.errors[name]:.0e}" if name in self.errors else "–"

    def ratio(self, name, by):
        if name not in self.seconds or by not in self.seconds:
            return "–"
        return digits(self.seconds[name] / self.seconds[by])


def of_motion(motion):
    return motion.qdd, motion.Q_c, motion.multipliers


def race_single(family, n, m, rounds, pyudk):
    M, Q, A, b = system = tuple(x[0] for x in make_batch(family, n, m, 1))
    named = {"M": M, "Q": Q, "A": A, "b": b}
    race = Race(f"({n},{m})", peers.reference(*system))
    if gm:
        race.add("gm.solve", lambda: of_motion(gm.solve(*system)), sampler(gm.solve, **named))
        race.add(
            "gm.acceleration",
            lambda: (gm.acceleration(*system), None, None),
            sampler(gm.acceleration, **named),
        )
    for name, function in peers.SINGLE.items():
        race.add(name, partial(function, *system), sampler(function, **named))
    if pyudk:
        child, index = pyudk
        race.add("pyudk", partial(child.answer, index, M, Q), child.sampler(index))
    return race.run(rounds, SAMPLE_SINGLE)


def race_batch(family, n, m, batch, rounds):
    count = batch_count(n, batch)
    M, Q, A, b = systems = make_batch(family, n, m, count)
    named = {"M": M, "Q": Q, "A": A, "b": b}
    parts = [peers.reference(*(x[i : i + 500] for x in systems)) for i in range(0, count, 500)]
    race = Race(f"({n},{m}) × {count}", [np.concatenate(x) for x in zip(*parts, strict=True)])
    if gm:
        three = partial(gm.solve, outputs=THREE)
        race.add("gm, 3 outputs", lambda: of_motion(three(*systems)), sampler(three, **named))
        race.add("gm.solve", lambda: of_motion(gm.solve(*systems)), sampler(gm.solve, **named))
    K, rhs = peers.kkt_matrix_batch(*systems)

    def ready_made():
        x = np.linalg.solve(K, rhs)[..., 0]
        return x[:, :n], None, x[:, n:]

    race.add("KKT ready-made", ready_made, sampler(np.linalg.solve, K=K, rhs=rhs))
    race.add(
        "KKT with assembly",
        partial(peers.kkt_batch, *systems),
        sampler(peers.kkt_batch, **named),
    )
    return race.run(rounds, SAMPLE_BATCH, count)


# --- printing ---------------------------------------------------------------------------------


def digits(x):
    """Three significant digits, never an exponent."""
    if not math.isfinite(x) or x <= 0:
        return "–"
    return f"{x:.{max(0, 2 - math.floor(math.log10(x)))}f}"


def table(head, rows):
    """A Markdown table, first column left, the others right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]
    for row in (head, rule, *rows):
        cells = [
            row[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        print("| " + " | ".join(cells) + " |")
    print(flush=True)


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def print_header(args, child):
    print("# gaussmech: kernel benchmark\n")
    version = importlib.metadata.version("gaussmech") if gm else "not installed, peers only"
    print(
        f"- gaussmech {version}; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}"
    )
    print(f"- CPU: {cpu_name()}, {platform.machine()}, {os.cpu_count()} cores")
    if threadpoolctl:
        for lib in threadpoolctl.threadpool_info():
            owner = pathlib.Path(lib["filepath"]).parent.name.partition(".")[0]
            print(
                f"- BLAS of {owner}: {lib['internal_api']} {lib['version']}, kernel "
                f"{lib.get('architecture', 'unknown')}, {lib['num_threads']} thread (limited by "
                "threadpoolctl)"
            )
    else:
        print(
            "- BLAS: one thread by environment variables, kernel unknown (threadpoolctl is "
            "not installed)"
        )
    if core := os.environ.get("OPENBLAS_CORETYPE"):
        print(
            f"- OPENBLAS_CORETYPE={core} is set and forces the BLAS kernel: the peers may be "
            "slower than they need to be"
        )
    if child:
        facts = child.facts
        print(
            f"- pyudk in its own process: Python {facts['python']}, NumPy {facts['numpy']}, "
            f"SciPy {facts['scipy']}. The call of its README: {facts['readme_call']}; "
            "called here with None for `self`. It gives Q_c only"
        )
    print(
        f"- interleaved, minima over {args.rounds} rounds (batches) and {5 * args.rounds} rounds "
        "(single calls); ratios above 1 mean that gaussmech is faster"
    )
    print(
        "- errors: relative 2-norm, the worst of qdd, Q_c and multipliers and of all systems, "
        "against a reference refined in extended precision; `wrong` above "
        f"{TOLERANCE:.0e}\n"
    )


def report(title, races, names, pairs):
    """The tables of one kind of call: times, ratios, errors, and who was wrong."""
    print(f"### {title}, µs per system\n")
    table(["(n, m)", *names], [[r.where, *map(r.time, names)] for r in races])
    if gm:
        print("Ratios:\n")
        head = ["(n, m)", *(f"{peer} / {ours}" for peer, ours in pairs)]
        table(head, [[r.where, *(r.ratio(*pair) for pair in pairs)] for r in races])
    print("Errors:\n")
    table(["(n, m)", *names], [[r.where, *map(r.error, names)] for r in races])
    remarks = [f"- {r.where}, {name}: {text}" for r in races for name, text in r.remarks.items()]
    if remarks:
        print("Wrong or failed:\n\n" + "\n".join(remarks) + "\n", flush=True)


def run_family(args, family, child, offset):
    print(f"## Family {family}\n", flush=True)
    ours = ["gm.solve", "gm.acceleration"] if gm else []
    others = [*peers.SINGLE, *(["pyudk"] if child else [])]
    races = [
        race_single(family, n, m, 5 * args.rounds, (child, offset + i) if child else None)
        for i, (n, m) in enumerate(args.sizes)
    ]
    pairs = [*((name, "gm.solve") for name in others), ("KKT", "gm.acceleration")]
    report("Single calls", races, ours + others, pairs)

    ours = ["gm, 3 outputs", "gm.solve"] if gm else []
    others = ["KKT ready-made", "KKT with assembly"]
    races = [race_batch(family, n, m, args.batch, args.rounds) for n, m in args.sizes]
    pairs = [(peer, name) for peer in others for name in ours]
    report("Batches", races, ours + others, pairs)


def parse_size(text):
    try:
        n, m = (int(part) for part in text.strip("()").split(","))
    except ValueError:
        n = m = 0
    if not 0 < m <= n:
        raise argparse.ArgumentTypeError(f"{text!r}: expected n,m with 0 < m <= n, as in 12,6")
    return n, m


def parse_family(text):
    name, _, ratio = text.partition(":")
    try:
        good = text == "well" or (name == "graded" and 1 <= float(ratio) < math.inf)
    except ValueError:
        good = False
    if not good:
        raise argparse.ArgumentTypeError(f"{text!r}: expected well or graded:R, as in graded:1e12")
    return text


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a positive whole number")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--rounds",
        type=positive,
        default=20,
        metavar="N",
        help="rounds of the batches; single calls get five times as many",
    )
    parser.add_argument("--sizes", type=parse_size, nargs="+", default=SIZES, metavar="n,m")
    parser.add_argument(
        "--batch",
        type=positive,
        default=10000,
        metavar="K",
        help="systems in a batch (a fifth of it from n = 60, a hundredth from 200)",
    )
    parser.add_argument(
        "--family",
        type=parse_family,
        nargs="+",
        default=FAMILIES,
        metavar="FAMILY",
        help="well, or graded:R with the mass ratio R (default: well graded:1e12)",
    )
    parser.add_argument(
        "--pyudk",
        metavar="PYTHON",
        help="interpreter of an environment in which pyudk is installed",
    )
    args = parser.parse_args()
    if threadpoolctl:
        threadpoolctl.threadpool_limits(1)
    child = None
    if args.pyudk:
        cases = [(family, *size) for family in args.family for size in args.sizes]
        child = Pyudk(args.pyudk, [tuple(x[0] for x in make_batch(*c, 1)) for c in cases])
    print_header(args, child)
    for i, family in enumerate(args.family):
        run_family(args, family, child, i * len(args.sizes))
    if child:
        child.close()


if __name__ == "__main__":
    sys.exit(main())
