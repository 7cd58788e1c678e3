"""Whole models against what one would use instead: a closed planar chain, as Markdown tables.

    python benchmarks/bench_model.py [--rounds N] [--bodies 4 16 64]

A chain of N bars, pinned to the ground at both ends: 3 N coordinates, 2 N + 2 constraint rows.
Contenders take turns in every round, each time is the minimum over the rounds, BLAS has one
thread. Peers that are not installed are left out: `pip install sympy mujoco pin`.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import importlib.util
import platform
import time

import numpy as np

import gaussmech as gm
from gaussmech.reading import read

G, STATES = 9.81, 1000


# --- the chain --------------------------------------------------------------------------------


def geometry(N):
    """Angles of N bars of length one whose ends meet the ground at (0, 0) and (span, 0): an arc."""
    turn = 2.0 / N
    a = turn * (np.arange(N) - (N - 1) / 2)
    return a, float(np.cos(a).sum())


def state(N):
    """Coordinates (x, y, angle) of each bar, hanging between its pins, at rest."""
    a, _ = geometry(N)
    ends = np.concatenate([[[0.0, 0.0]], np.cumsum(np.stack([np.cos(a), np.sin(a)], 1), axis=0)])
    centres = 0.5 * (ends[:-1] + ends[1:])
    return np.column_stack([centres, a]).ravel()


def gaussmech_model(N):
    _, span = geometry(N)

    def phi(t, q):
        x, y, a = q.reshape(N, 3).T
        c, s = 0.5 * np.cos(a), 0.5 * np.sin(a)
        left, right = np.stack([x - c, y - s]), np.stack([x + c, y + s])
        gaps = right[:, :-1] - left[:, 1:]
        return np.concatenate([left[:, 0], gaps.T.ravel(), right[:, -1] - np.array([span, 0.0])])

    q = state(N)
    s = gm.System(
        coordinates=[f"{c}{k}" for k in range(N) for c in "xya"], q=q, qd=0 * q,
        mass_matrix=np.diag(np.tile([1.0, 1.0, 1 / 12], N)), force=np.tile([0.0, -G, 0.0], N),
    )  # fmt: skip
    s.add_constraint(gm.Holonomic("pins", phi))
    return s


class ByHand:
    """The same chain in NumPy, A and b derived on paper; vectorised over bars and states."""

    def __init__(self, N):
        self.N, self.n, self.m = N, 3 * N, 2 * N + 2
        self.M = np.diag(np.tile([1.0, 1.0, 1 / 12], N))
        self.Q = np.tile([0.0, -G, 0.0], N)
        k = np.arange(N)
        self.left, self.right = 2 * k, 2 * k + 2  # rows in which a bar's ends appear
        self.sign = np.where(k == 0, 1.0, -1.0)

    def assemble(self, q, qd):
        N, batch = self.N, q.shape[:-1]
        a, w = q[..., 2::3], qd[..., 2::3]
        c, s = 0.5 * np.cos(a), 0.5 * np.sin(a)
        A, b = np.zeros((*batch, self.m, self.n)), np.zeros((*batch, self.m))
        x, k = 3 * np.arange(N), np.arange(N)
        l, r, sign = self.left, self.right, self.sign
        A[..., l, x], A[..., l + 1, x + 1] = sign, sign
        A[..., l, x + 2], A[..., l + 1, x + 2] = sign * s, -sign * c
        A[..., r, x], A[..., r + 1, x + 1] = 1.0, 1.0
        A[..., r, x + 2], A[..., r + 1, x + 2] = -s, c
        b[..., l] -= sign * c * w * w
        b[..., l + 1] -= sign * s * w * w
        b[..., r] += c * w * w
        b[..., r + 1] += s * w * w
        assert len(k) == N
        return A, b

    def solve(self, q, qd):
        A, b = self.assemble(q, qd)
        n, m, batch = self.n, self.m, q.shape[:-1]
        K = np.zeros((*batch, n + m, n + m))
        K[..., :n, :n] = self.M
        K[..., :n, n:], K[..., n:, :n] = -A.swapaxes(-1, -2), A
        right = np.concatenate([np.broadcast_to(self.Q, (*batch, n)), b], axis=-1)
        return np.linalg.solve(K, right[..., None])[..., :n, 0]


# --- peers ------------------------------------------------------------------------------------


def sympy_model(N):
    """LagrangesMethod with multipliers and lambdify, in the same coordinates."""
    import sympy as sp
    from sympy.physics.mechanics import LagrangesMethod, dynamicsymbols

    _, span = geometry(N)
    q = [dynamicsymbols(f"{c}{k}") for k in range(N) for c in "xya"]
    t = dynamicsymbols._t
    x, y, a = q[0::3], q[1::3], q[2::3]
    left = [(x[k] - sp.cos(a[k]) / 2, y[k] - sp.sin(a[k]) / 2) for k in range(N)]
    right = [(x[k] + sp.cos(a[k]) / 2, y[k] + sp.sin(a[k]) / 2) for k in range(N)]
    rows = [*left[0]]
    for k in range(N - 1):
        rows += [right[k][0] - left[k + 1][0], right[k][1] - left[k + 1][1]]
    rows += [right[-1][0] - span, right[-1][1]]
    T = sum((x[k].diff(t) ** 2 + y[k].diff(t) ** 2 + a[k].diff(t) ** 2 / 12) / 2 for k in range(N))
    method = LagrangesMethod(T - sum(G * v for v in y), q, hol_coneqs=rows)
    method.form_lagranges_equations()
    M, F = method.mass_matrix_full, method.forcing_full
    u = [v.diff(t) for v in q]
    plain = sp.symbols(f"q0:{6 * N}")
    swap = dict(zip([*u, *q], [*plain[3 * N :], *plain[: 3 * N]], strict=True))
    f = sp.lambdify([plain], [M.subs(swap), F.subs(swap)], cse=True)
    n = 3 * N

    def solve(q, qd):
        matrix, forcing = f(np.concatenate([q, qd]))
        return np.linalg.solve(matrix, forcing[:, 0])[n : 2 * n]

    return solve


def pinocchio_model(N):
    """A tree of hinges and one loop closure, constraintDynamics."""
    import pinocchio as pin

    angles, span = geometry(N)
    model = pin.Model()
    model.gravity.linear = np.array([0.0, -G, 0.0])
    joint, place = 0, pin.SE3.Identity()
    for k in range(N):
        joint = model.addJoint(joint, pin.JointModelRZ(), place, f"hinge {k}")
        inertia = pin.Inertia(1.0, np.array([0.5, 0, 0]), np.diag([1e-3, 1 / 12, 1 / 12]))
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        place = pin.SE3(np.eye(3), np.array([1.0, 0, 0]))
    pin_at = pin.SE3(np.eye(3), np.array([span, 0.0, 0.0]))
    closure = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, joint, place, 0, pin_at)
    data, settings = model.createData(), pin.ProximalSettings(1e-12, 1e-10, 20)
    contacts = pin.StdVec_RigidConstraintModel()
    found = pin.StdVec_RigidConstraintData()
    contacts.append(closure)
    found.append(closure.createData())
    pin.initConstraintDynamics(model, data, contacts, found)
    q = np.diff(angles, prepend=0.0)
    v, tau = np.zeros(N), np.zeros(N)
    return lambda: pin.constraintDynamics(model, data, q, v, tau, contacts, found, settings)


def mujoco_model(N):
    """A tree of hinges and one soft `connect`, mj_forward."""
    import mujoco

    angles, span = geometry(N)
    inner = ""
    for k in reversed(range(N)):
        place = "0 0 0" if k == 0 else "1 0 0"
        inner = (
            f'<body name="b{k}" pos="{place}"><joint type="hinge" axis="0 0 1"/>'
            f'<inertial pos=".5 0 0" mass="1" diaginertia=".001 {1 / 12} {1 / 12}"/>{inner}</body>'
        )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option gravity="0 {-G} 0"/><worldbody>{inner}'
        f'<site name="s" pos="{span} 0 0"/></worldbody><equality>'
        f'<connect body1="b{N - 1}" anchor="1 0 0"/></equality></mujoco>'
    )
    data = mujoco.MjData(model)
    data.qpos[:] = np.diff(angles, prepend=0.0)
    return lambda: mujoco.mj_forward(model, data)


def installed(name):
    return importlib.util.find_spec(name) is not None


# --- timing -----------------------------------------------------------------------------------


def interleaved(calls, rounds, least=2e-3):
    """Seconds a call, the minimum over rounds in which all take turns."""
    repeats = {}
    for name, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        repeats[name] = max(1, int(least / max(time.perf_counter() - start, 1e-7)))
    best = dict.fromkeys(calls, np.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats[name])
    return best


def clock(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(title, head, rows):
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def once(build):
    start = time.perf_counter()
    made = build()
    return made, time.perf_counter() - start


def chain(N, rounds):
    def built():
        s = gaussmech_model(N)
        read(s)
        return s

    s, _ = once(built)
    compile_time = min(once(built)[1] for _ in range(5))
    hand = ByHand(N)
    q, qd = s.q, s.qd + 0.0
    rng = np.random.default_rng(0)
    Q, V = np.broadcast_to(q, (STATES, len(q))).copy(), rng.uniform(-1, 1, (STATES, len(q)))
    ready = s.assemble(0.0, q, qd)
    ready_many = s.assemble(0.0, Q, V)
    scale = {"row_scale": ready.row_scale, "b_atol": ready.b_error}
    scale_many = {"row_scale": ready_many.row_scale, "b_atol": ready_many.b_error}
    error = np.abs(s.solve(0.0, q, qd).qdd - hand.solve(q, qd)).max()
    three = ("qdd", "Q_c", "multipliers")
    calls = {
        "assemble": lambda: s._model.compiled.kernel.evaluate(0.0, q, qd, np.zeros(0), np.zeros(0)),
        "solve": lambda: s.solve(0.0, q, qd),
        "gm.solve": lambda: gm.solve(*ready[:4], **scale),
        "hand assemble": lambda: hand.assemble(q, qd),
        "hand solve": lambda: hand.solve(q, qd),
    }
    peers = {}
    builds = {"gaussmech": compile_time}
    if installed("sympy") and N <= 4:
        f, builds["SymPy"] = once(lambda: sympy_model(N))
        peers["SymPy lambdify"] = lambda: f(q, qd)
    if installed("pinocchio"):
        peers["Pinocchio constraintDynamics"], builds["Pinocchio"] = once(
            lambda: pinocchio_model(N)
        )
    if installed("mujoco"):
        peers["MuJoCo mj_forward"], builds["MuJoCo"] = once(lambda: mujoco_model(N))
    one = interleaved(calls | peers, rounds)
    many = interleaved(
        {
            "assemble": lambda: s._model.compiled.kernel.evaluate(
                0.0, Q, V, np.zeros(0), np.zeros(0)
            ),
            "solve": lambda: s.solve(0.0, Q, V, outputs=three),
            "gm.solve": lambda: gm.solve(*ready_many[:4], **scale_many, outputs=three),
            "hand assemble": lambda: hand.assemble(Q, V),
            "hand solve": lambda: hand.solve(Q, V),
        },
        max(3, rounds // 4),
    )
    n, m = len(q), 2 * N + 2
    rows = [
        [name, clock(one[name]), clock(many[name] / STATES), f"{one[name] / one['solve']:.2f}",
         f"{many[name] / many['solve']:.2f}"]
        for name in many
    ] + [
        [name, clock(one[name]), "–", f"{one[name] / one['solve']:.2f}", "–"] for name in peers
    ]  # fmt: skip
    title = f"{N} bars: {n} coordinates, {m} rows, {len(s._model.compiled)} instructions"
    table(title, ["", "one state", f"a state of {STATES}", "ratio to solve", "in batches"], rows)
    print(f"\nbuild: {', '.join(f'{k} {clock(v)}' for k, v in builds.items())}; "
          f"largest difference to the solution by hand {error:.1e}")  # fmt: skip


def platform_table(rounds):
    """A platform on three parallel cranks: the price of the model beside ready-made arrays."""
    s = gm.System(
        coordinates=["x", "y", "phi"], q=[np.cos(0.7), np.sin(0.7), 0], qd=[0.0, 0, 0],
        mass_matrix=np.diag([2.0, 2, 0.3]), force=[1.0, -19.62, 0.5],
    )  # fmt: skip
    for k, a in enumerate((-0.5, 0.0, 0.5)):
        s.add_constraint(gm.Holonomic(f"crank {k}", lambda t, q, a=a: (
            q[0] + a * np.cos(q[2]) - a) ** 2 + (q[1] + a * np.sin(q[2])) ** 2 - 1.0))  # fmt: skip
    q, qd = s.q, s.qd
    ready = s.assemble()
    given = {"row_scale": ready.row_scale, "b_atol": ready.b_error}
    best = interleaved(
        {
            "s.solve(t, q, qd)": lambda: s.solve(0.0, q, qd),
            "gm.solve of ready-made arrays": lambda: gm.solve(*ready[:4], **given),
        },
        rounds,
    )
    base = best["gm.solve of ready-made arrays"]
    rows = [[name, clock(value), f"{value / base:.2f}"] for name, value in best.items()]
    table("A platform on three cranks", ["", "time", "ratio"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--bodies", type=int, nargs="+", default=[4, 16, 64])
    arguments = parser.parse_args()
    print(f"gaussmech {gm.__version__}, {gm.build_info()['cpu']}, NumPy {np.__version__}, "
          f"Python {platform.python_version()}")  # fmt: skip
    platform_table(arguments.rounds)
    for N in arguments.bodies:
        chain(N, arguments.rounds)


if __name__ == "__main__":
    main()
