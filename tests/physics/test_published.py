"""Published and closed-form problems: M, Q, A, b from parameters, answers from data/reference.

Every test names its file there; the file tells source, derivation and digits to trust. One sign
convention: M qdd = Q + Q_c, Q_ideal = A.T @ multipliers. Planar problems are written in the complex
plane: a point is start + sum c exp(i a.q), so its Jacobian and its quadratic acceleration are two
more such sums.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy import cos, sin

import gaussmech as gm

REFERENCE = Path(__file__).parents[1] / "data" / "reference"

# Closed forms stored with 15 digits or more: their last digit is worth up to 5e-15, typed
# matrices and the solve add a few eps times a condition number that stays below 10 in these
# problems. 100 eps = 2.2e-14 covers both.
CLOSED = 100 * np.finfo(float).eps


def load(name):
    return json.loads((REFERENCE / f"{name}.json").read_text(encoding="utf-8"))


def numbers(x):
    """Nested lists of numbers and decimal strings as a float array."""
    return np.array([numbers(v) for v in x]) if isinstance(x, list) else float(x)


def near(x, ref, tol=CLOSED, scale=None):
    """max |x - ref| <= tol * scale; scale is max |ref|, or given where zeros are expected."""
    x, ref = np.asarray(x, float), np.asarray(ref, float)
    assert x.shape == ref.shape
    scale = np.max(np.abs(ref)) if scale is None else scale
    error = np.max(np.abs(x - ref), initial=0.0)
    assert error <= tol * scale, f"error {error:.3g} > {tol:.3g} * {scale:.3g}\n{x}\n{ref}"


def solved(M, Q, A, b, C=None, rank=None):
    """The motion of a well-posed problem: status OK, a unique acceleration, the expected rank."""
    motion = gm.solve(M, Q, A, b, C)
    assert motion.status == gm.Status.OK
    assert motion.nullity == 0
    assert motion.rank == (len(b) if rank is None else rank)
    return motion


def cross(r):
    """The matrix of r x."""
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


def point(q, qd, start, *terms):
    """The point start + sum c exp(i a.q): place z, Jacobian J, and s in zdd = J @ qdd + s."""
    z, J, s = complex(start), np.zeros(len(q), complex), 0j
    for c, a in terms:
        a = np.array(a, float)
        e = c * np.exp(1j * (a @ q))
        z, J, s = z + e, J + 1j * a * e, s - (a @ qd) ** 2 * e
    return z, J, s


def planar_bodies(n, bodies):
    """M and Q of bodies, each (mass, inertia, row of its angular rate, centre, complex force)."""
    M, Q = np.zeros((n, n)), np.zeros(n)
    for m, inertia, w, (_, J, s), force in bodies:
        M += m * np.outer(J.conj(), J).real + inertia * np.outer(w, w)
        Q += (J.conj() * (force - m * s)).real
    return M, Q


def closures(points):
    """Rows of complex closure conditions: two real rows for each."""
    A = np.array([row for _, J, _ in points for row in (J.real, J.imag)])
    b = np.array([v for _, _, s in points for v in (-s.real, -s.imag)])
    return A, b


# ----------------------------------------------------------------------------------------
# Andrews' squeezer

ANGLES = np.eye(7)
BETA, THETA, GAMMA, PHI, DELTA, OMEGA, EPSILON = ANGLES


def squeezer(q, qd):
    """M, Q, A, b of andrews_squeezer.json at one state, and the gaps of its three loops.

    Q holds the spring, the motor and the centrifugal terms.
    """
    p = load("andrews_squeezer")["parameters"]
    a0, b0, c0 = (complex(p["x" + k], p["y" + k]) for k in "abc")

    def at(start, *terms):
        return point(q, qd, start, *terms)

    crank = (p["rr"], BETA)
    bars = [
        at(0, (p["ra"], BETA)),
        at(0, crank, (-p["da"], BETA + THETA)),
        at(b0, (p["sb"] - 1j * p["sa"], GAMMA)),
        at(a0, (p["zt"], DELTA), (-1j * (p["e"] - p["ea"]), PHI + DELTA)),
        at(a0, (p["ta"] + 1j * p["tb"], DELTA)),
        at(a0, (-1j * p["u"], EPSILON), (p["zf"] - p["fa"], OMEGA + EPSILON)),
        at(a0, (-(p["ub"] + 1j * p["ua"]), EPSILON)),
    ]
    rates = [BETA, BETA + THETA, GAMMA, PHI + DELTA, DELTA, OMEGA + EPSILON, EPSILON]
    M, Q = planar_bodies(
        7,
        [
            (p[f"m{k}"], p[f"i{k}"], w, bar, 0.0)
            for k, w, bar in zip(range(1, 8), rates, bars, strict=True)
        ],
    )
    end, J, _ = at(b0, (p["sd"] - 1j * p["sc"], GAMMA))
    length = abs(end - c0)
    pull = -p["c0"] * (length - p["l0"]) * (end - c0) / length
    Q += (J.conj() * pull).real + p["mom"] * BETA

    coupler = (-p["d"], BETA + THETA)
    loops = [
        at(-b0, crank, coupler, (1j * p["ss"], GAMMA)),
        at(-a0, crank, coupler, (1j * p["e"], PHI + DELTA), (-p["zt"], DELTA)),
        at(-a0, crank, coupler, (-p["zf"], OMEGA + EPSILON), (1j * p["u"], EPSILON)),
    ]
    return M, Q, *closures(loops), np.array([z for z, _, _ in loops])


def test_squeezer_parameters_close_its_loops_at_the_initial_state():
    start = load("andrews_squeezer")["initial_conditions"]
    *_, gaps = squeezer(numbers(start["q"]), numbers(start["qd"]))
    # links of 0.07 at most: a few roundings of that length
    assert np.max(np.abs(gaps)) <= 0.07 * 4 * np.finfo(float).eps


def test_squeezer_starts_with_the_published_accelerations_and_multipliers():
    start = load("andrews_squeezer")["initial_conditions"]
    M, Q, A, b, _ = squeezer(numbers(start["q"]), numbers(start["qd"]))
    motion = solved(M, Q, A, b)
    # 18 digits are published; 1e-12 of the largest entry is asked for
    near(motion.qdd, numbers(start["qdd_published"]), 1e-12)
    near(motion.multipliers, -numbers(start["lambda_published"]), 1e-12)


def test_squeezer_has_the_computed_accelerations_and_multipliers_after_30_milliseconds():
    expected = load("andrews_squeezer")["expected"]
    state = (numbers(expected["computed_here_" + k]) for k in ("q", "qd"))
    M, Q, A, b, gaps = squeezer(*state)
    assert np.max(np.abs(gaps)) <= 0.07 * 4 * np.finfo(float).eps
    motion = solved(M, Q, A, b)
    # 19 digits of one and the same state: what is left is its rounding to float64, which moves
    # the exact accelerations and multipliers by up to 5e-15 of their largest entry
    near(motion.qdd, numbers(expected["computed_here_qdd"]))
    near(motion.multipliers, -numbers(expected["computed_here_lambda"]))


def test_squeezer_published_state_after_30_milliseconds_is_matched_to_its_own_digits():
    expected = load("andrews_squeezer")["expected"]
    M, Q, A, b, _ = squeezer(numbers(expected["q"]), numbers(expected["qd"]))
    motion = solved(M, Q, A, b)
    # index-3 accuracy loss: the published accelerations differ from M, Q, A, b at their own
    # state by up to 1.3e-6
    near(motion.qdd, numbers(expected["qdd"]), 1.3e-6)
    near(motion.multipliers, -numbers(expected["lam"]), 1.3e-6)


# ----------------------------------------------------------------------------------------
# singular mass matrices


def test_massless_junction_moves_with_the_body_it_is_attached_to():
    f = load("singular_massless_junction")
    p, good = f["parameters"], f["expected"]["good"]
    q = f["initial_conditions"]["q"]
    stretch = q[1] - q[0] - p["rest"]
    Q = [p["k"] * stretch, -p["k"] * stretch + p["force_on_J"], 0.0]
    near(Q, good["Q"])
    M = np.diag([p["mA"], p["mJ"], p["mB"]])
    motion = solved(M, Q, [[0, 1, -1]], [0])
    near(motion.qdd, good["qdd"])
    near(motion.multipliers, [-p["mB"] * good["qdd"][2]])


def test_massless_junction_attached_to_nothing_is_refused_with_its_direction():
    f = load("singular_massless_junction")
    p, bad = f["parameters"], f["expected"]["non_unique"]
    M = np.diag([p["mA"], p["mJ"], p["mB"]])
    with pytest.raises(gm.IndeterminateMotionError) as caught:
        gm.solve(M, bad["Q"], bad["A"], bad["b"])
    # a force acts on the massless free direction, so there is no finite acceleration at all
    assert caught.value.kind == "none"
    assert f"{bad['rank_of_M_over_A']} of {bad['n']}" in str(caught.value)
    vectors = np.atleast_2d(caught.value.null_vectors)
    near(np.abs(vectors) / np.linalg.norm(vectors), [[0, 1, 0]])
    status = gm.solve(M, bad["Q"], bad["A"], bad["b"], errors="status").status
    assert status == gm.Status.INDETERMINATE_NONE
    without_force = [bad["Q"][0], 0.0, bad["Q"][2]]
    with pytest.raises(gm.IndeterminateMotionError) as caught:
        gm.solve(M, without_force, bad["A"], bad["b"])
    assert caught.value.kind == "many"


def test_two_masses_cut_into_subsystems_move_as_the_uncut_chain():
    f = load("singular_two_mass_decomposition")
    p, expected = f["parameters"], f["expected"]
    x1, _, x2 = f["initial_conditions"]["q"]
    Q = [-p["k1"] * (x1 - p["l10"]), 0.0, -p["k2"] * (x2 - p["l20"])]
    near(Q, expected["Q"])
    motion = solved(p["M"], Q, expected["A"], expected["b"])
    near(motion.qdd, expected["qdd"])
    near(motion.Q_c, expected["Qc"])


def test_wheel_on_incline_with_a_massless_displacement_rolls_down_as_in_closed_form():
    f = load("singular_wheel_on_incline")
    p, expected = f["parameters"], f["expected"]
    m, R, inertia = (float(p[k].split()[0]) for k in ("m", "R", "I"))
    alpha = float(p["alpha"].split()[0])
    M, Q = np.diag([0, m * R**2 + inertia]), [m * p["g"] * sin(alpha), 0]
    near(M, p["M"])
    near(Q, p["Q"])
    motion = solved(M, Q, [[1, -R]], [0])
    near(motion.qdd, expected["qdd"])
    near(motion.qdd[0], m * p["g"] * R**2 * sin(alpha) / (m * R**2 + inertia))
    near(motion.Q_c, expected["Qc"])


# ----------------------------------------------------------------------------------------
# nonholonomic particle of Pars, ideal and with a given non-ideal force


def pars_particle():
    f = load("uk_particle_ydot_eq_z_xdot")
    p, z = f["parameters"], f["initial_conditions"]["q"][2]
    xd, _, zd = f["initial_conditions"]["qd"]
    return f, 2.0 * np.eye(3), p["F"], [[-z, 1, 0]], [zd * xd], p["C"]


def test_particle_with_ydot_equal_z_xdot_has_the_closed_form_ideal_motion():
    f, M, Q, A, b, _ = pars_particle()
    expected = f["expected"]
    near(A, expected["A"])
    near(b, expected["b"])
    motion = solved(M, Q, A, b)
    near(motion.qdd, expected["qdd_ideal"])
    near(motion.multipliers, [expected["lambda_ideal"]], scale=1)  # 0.027 left of forces of order 1
    near(motion.Q_c, expected["Qc_ideal"], scale=1)
    near(motion.K, np.zeros(3), scale=1)
    # Z = Q_c . Q_c / m = 5e-4, with Q_c good to CLOSED * 1 in absolute terms
    near(motion.zwang, expected["Zwang_ideal"], scale=0.1)
    near(gm.acceleration(M, Q, A, b), expected["qdd_ideal"])
    near(gm.constraint_force(M, Q, A, b), expected["Qc_ideal"], scale=1)


def test_particle_with_ydot_equal_z_xdot_feels_drag_as_a_non_ideal_force():
    f, M, Q, A, b, C = pars_particle()
    expected = f["expected"]
    v = np.array(f["initial_conditions"]["qd"])
    near(-0.8 * np.linalg.norm(v) * v, C)
    motion = solved(M, Q, A, b, C)
    near(motion.qdd, expected["qdd_nonideal"])
    near(motion.Q_c, expected["Qc_total_nonideal"])
    near(motion.K, expected["K_nonideal_part"])
    near(gm.nonideal_force(M, A, C), expected["K_nonideal_part"])
    near(motion.Q_ideal, expected["Qc_ideal"], scale=1)
    near(motion.multipliers, [expected["lambda_ideal"]], scale=1)
    # v obeys the homogeneous constraint, so C = -0.8 |v| v has no part along the row: both
    # multipliers agree
    near(motion.multipliers_total, [expected["lambda_ideal"]], scale=1)


# ----------------------------------------------------------------------------------------
# pendulums


def rod_with_two_masses(phi, phid=0.0):
    """M, Q, A, b of two_mass_pendulum.json, and the row and value that hold the masses apart."""
    p = load("two_mass_pendulum")["parameters"]
    n, t = np.array([sin(phi), -cos(phi)]), np.array([cos(phi), sin(phi)])
    (x1, y1), (x2, y2) = r1, r2 = p["r1"] * n, p["r2"] * n
    v1, v2 = p["r1"] * phid * t, p["r2"] * phid * t
    M = np.diag([p["m1"], p["m1"], p["m2"], p["m2"]])
    Q = [0, -p["m1"] * p["g"], 0, -p["m2"] * p["g"]]
    A = np.array([[x1, y1, 0, 0], [0, 0, x2, y2], [y2, -x2, -y1, x1]])
    # the velocities are parallel, so the collinearity row has no quadratic term
    b = np.array([-v1 @ v1, -v2 @ v2, 0])
    distance = np.concatenate([r1 - r2, r2 - r1])
    return M, Q, A, b, distance, -(v2 - v1) @ (v2 - v1)


def test_two_masses_on_a_massless_rod_start_as_the_compound_pendulum():
    f = load("two_mass_pendulum")
    M, Q, A, b, *_ = rod_with_two_masses(f["initial_conditions"]["phi"])
    motion = solved(M, Q, A, b)
    near(motion.qdd, f["expected"]["qdd_t0"])
    near(motion.Q_c, f["expected"]["Qc_t0"])


def test_two_masses_on_a_massless_rod_keep_to_the_compound_pendulum_along_the_orbit():
    f = load("two_mass_pendulum")
    p = f["parameters"]
    for _, phi, phid in numbers(f["expected"]["rows"]):
        M, Q, A, b, *_ = rod_with_two_masses(phi, phid)
        motion = solved(M, Q, A, b)
        phidd = -p["g"] * sin(phi) / f["expected"]["equivalent_length"]
        n, t = np.array([sin(phi), -cos(phi)]), np.array([cos(phi), sin(phi)])
        one = phidd * t - phid**2 * n
        near(motion.qdd, np.concatenate([p["r1"] * one, p["r2"] * one]))


def test_a_fourth_redundant_row_of_the_rod_changes_neither_motion_nor_force():
    f = load("two_mass_pendulum")
    for phi, phid in [(f["initial_conditions"]["phi"], 0.0), (0.3, -1.7)]:
        M, Q, A, b, row, value = rod_with_two_masses(phi, phid)
        plain = solved(M, Q, A, b)
        motion = solved(M, Q, np.vstack([A, row]), np.append(b, value), rank=3)
        near(motion.qdd, plain.qdd)
        near(motion.Q_c, plain.Q_c)
        # the three distances are one too many, the collinearity row stands alone
        assert list(motion.multipliers_unique) == [False, False, True, False]
        near(motion.multipliers[2], plain.multipliers[2])


def test_three_distance_rows_of_the_rod_have_rank_two_and_leave_two_separate_pendulums():
    f = load("two_mass_pendulum")
    p, phi = f["parameters"], f["initial_conditions"]["phi"]
    M, Q, A, b, row, value = rod_with_two_masses(phi)
    motion = solved(M, Q, np.vstack([A[:2], row]), np.append(b[:2], value), rank=2)
    alone = -p["g"] * sin(phi) * np.array([cos(phi), sin(phi)])
    near(motion.qdd, np.concatenate([alone, alone]))
    assert not motion.multipliers_unique.any()


def test_double_pendulum_in_cartesian_coordinates_starts_as_in_its_angles():
    f = load("double_pendulum_cartesian")
    p, expected = f["parameters"], f["expected"]
    r1, r2 = np.split(np.array(f["initial_conditions"]["cartesian"]), 2)
    M = np.diag([p["m1"], p["m1"], p["m2"], p["m2"]])
    Q = [0, -p["m1"] * p["g"], 0, -p["m2"] * p["g"]]
    A = [[*r1, 0, 0], [*(r1 - r2), *(r2 - r1)]]
    motion = solved(M, Q, A, [0, 0])
    near(motion.qdd, expected["qdd_t0"])
    # the multipliers of the file come from a double-precision solve: the floor of the yardstick
    near(motion.multipliers, expected["lambda_t0"], 1e-13)


def test_planar_pendulum_of_the_iftomm_library_has_the_elliptic_tension():
    f = load("iftomm_a01_planar_pendulum")
    rows = numbers(f["expected"]["rows"])
    assert len(rows) == 6
    for _, x, y, vx, vy, tension in rows:
        motion = solved(np.eye(2), [0, -9.81], [[x, y]], [-(vx**2 + vy**2)])
        near(motion.multipliers, [-tension])


def test_conical_pendulum_keeps_its_height_under_the_closed_form_tension():
    f = load("conical_pendulum")
    p, start = f["parameters"], f["initial_conditions"]
    q, v = np.array(start["q"]), np.array(start["qd"])
    motion = solved(p["m"] * np.eye(3), [0, 0, -p["m"] * p["g"]], [q / p["L"]], [-(v @ v) / p["L"]])
    near(motion.multipliers, [-float(f["expected"]["tension"])])
    near(motion.qdd, -(float(f["expected"]["omega"]) ** 2) * np.array([q[0], q[1], 0]))


def test_spherical_pendulum_has_the_tension_that_its_energy_and_height_demand():
    f = load("spherical_pendulum_3d")
    g, energy = f["parameters"]["g"], float(f["expected"]["conserved"]["E_per_m"])
    heights = numbers(f["expected"]["z_elliptic"])
    for row, z in zip(numbers(f["expected"]["rows"]), heights, strict=True):
        q, v = row[1:4], row[4:7]
        motion = solved(np.eye(3), [0, 0, -g], [q], [-v @ v])
        # |q| = 1: lambda = -v^2 + g z with v^2 = 2 (E - g z)
        near(motion.multipliers, [-2 * energy + 3 * g * z])


def test_sympy_pendulum_has_its_published_multiplier_with_the_opposite_sign():
    f = load("sympy_nonminimal_pendulum")
    m, expected = f["parameters"]["m"], f["expected"]
    q, v = np.array(f["initial_conditions"]["q"]), np.array(f["initial_conditions"]["qd"])
    A, b = [2 * q], [-2 * v @ v]
    near(A, expected["A"])
    near(b, expected["b"])
    motion = solved(m * np.eye(2), [9.8 * m, 0], A, b)
    near(motion.multipliers, [-expected["lam"]])
    near(motion.qdd, expected["qdd"])
    formula = (19.6 * q[0] + 2 * v @ v) / (4 * q @ q / m)
    near(motion.multipliers, [-formula])


# ----------------------------------------------------------------------------------------
# statics, one-shot machines


def test_hanging_links_carry_the_tensions_of_the_discrete_catenary():
    f = load("discrete_catenary_static")
    nodes = np.vstack([[0, 0], numbers(f["expected"]["node_positions_1_to_10"])])
    free = len(nodes) - 2
    A = np.zeros((len(nodes) - 1, free, 2))
    for k, along in enumerate(np.diff(nodes, axis=0) / f["parameters"]["link_length"]):
        if k < free:
            A[k, k] = along
        if k > 0:
            A[k, k - 1] = -along
    A = A.reshape(len(A), -1)
    motion = solved(np.eye(2 * free), np.tile([0, -1], free), A, np.zeros(len(A)))
    near(motion.qdd, np.zeros(2 * free), scale=1)  # rest, measured against g = 1
    near(motion.multipliers, -numbers(f["expected"]["link_tensions_over_mg"]))


def test_simple_atwood_machine_shares_the_difference_of_weights():
    f = load("atwood_machines")
    g, p, expected = f["parameters"]["g"], f["parameters"]["simple"], f["expected"]["simple"]
    masses = np.array([p["mA"], p["mB"]])
    motion = solved(np.diag(masses), masses * g, [[1, 1]], [0])
    near(motion.qdd, [expected["a_A"], -expected["a_A"]])
    near(motion.multipliers, [expected["lambda_for_A_row_1_1"]])
    near(motion.Q_c, [-expected["tension"], -expected["tension"]])


def test_atwood_machine_with_a_massive_pulley_has_two_tensions():
    f = load("atwood_machines")
    g, p, expected = f["parameters"]["g"], f["parameters"]["massive"], f["expected"]["massive"]
    M = np.diag([p["mA"], p["mB"], p["J"]])
    Q = [p["mA"] * g, p["mB"] * g, 0]
    motion = solved(M, Q, [[1, 0, -p["R"]], [0, 1, p["R"]]], [0, 0])
    near(motion.qdd, [expected["a_A"], -expected["a_A"], expected["alpha"]])
    near(motion.multipliers, [-expected["tension_A"], -expected["tension_B"]])


def test_compound_atwood_machine_is_the_same_with_and_without_its_massless_pulley():
    f = load("atwood_machines")
    g, p, expected = f["parameters"]["g"], f["parameters"]["compound"], f["expected"]["compound"]
    weights = np.array([p["M1"], p["M2"], p["M3"]])
    a = [expected[k] for k in ("a1", "a2", "a3")]
    motion = solved(np.diag(weights), weights * g, [[1, 0.5, 0.5]], [0])
    near(motion.qdd, a)
    near(motion.Q_c, [-expected["T1"], -expected["T2"], -expected["T2"]])
    pulley = np.insert(weights, 1, 0.0)
    motion = solved(np.diag(pulley), pulley * g, [[1, 1, 0, 0], [0, -2, 1, 1]], [0, 0])
    near(motion.qdd, [a[0], -a[0], a[1], a[2]])
    near(motion.multipliers, [-expected["T1"], -expected["T2"]])


def test_gear_train_has_the_reduced_inertia_with_and_without_its_redundant_row():
    f = load("gear_train_and_differential")
    p, expected = f["parameters"]["train"], f["expected"]["train"]
    M, Q = np.diag(p["J"]), [p["torque_on_1"], 0, 0]
    r1, r2, r3 = p["r"]
    A = np.array([[r1, r2, 0], [0, r2, r3]])
    near(A, expected["A"])
    motion = solved(M, Q, A, [0, 0])
    near(motion.qdd, expected["qdd"])
    near(motion.multipliers, expected["tooth_forces_lambda"])
    more = solved(M, Q, np.vstack([A, expected["redundant_A_third_row"]]), [0, 0, 0], rank=2)
    near(more.qdd, expected["qdd"])
    near(more.Q_c, motion.Q_c)
    assert not more.multipliers_unique.any()


def test_differential_shares_its_torque_between_the_wheels():
    f = load("gear_train_and_differential")
    p, expected = f["parameters"]["differential"], f["expected"]["differential"]
    M = np.diag([p["J_carrier"], p["J_wheel"], p["J_wheel"]])
    Q = [p["torque_carrier"], p["torque_left"], p["torque_right"]]
    motion = solved(M, Q, expected["A"], [0])
    near(motion.qdd, expected["qdd"])
    near(motion.multipliers, expected["lam"])


def test_yo_yo_falls_with_its_reduced_acceleration():
    f = load("yo_yo")
    p, expected = f["parameters"], f["expected"]
    motion = solved(np.diag([p["m"], p["I"]]), [p["m"] * p["g"], 0], [[1, -p["r"]]], [0])
    near(motion.qdd[0], expected["ydd"])
    near(motion.qdd[1], expected["thetadd"])
    near(motion.multipliers, [-expected["tension"]])


def test_block_on_a_movable_wedge_has_the_classical_normal_force():
    f = load("wedge_and_block")
    p, expected = f["parameters"], f["expected"]
    s, c = sin(p["alpha"]), cos(p["alpha"])
    M = np.diag([p["M"], p["m"], p["m"]])
    motion = solved(M, [0, 0, -p["m"] * p["g"]], [[-s, s, c]], [0])
    near(motion.qdd, expected["qdd"])
    near(motion.multipliers, [expected["normal_force"]])
    near(np.hypot(motion.qdd[1] - motion.qdd[0], motion.qdd[2]), expected["relative_sdd"])


def test_cylinder_rolling_on_a_movable_wedge_has_the_closed_form_accelerations():
    f = load("cylinder_on_moving_wedge")
    p, expected = f["parameters"], f["expected"]
    m, r, s, c = p["m"], p["r"], sin(p["alpha"]), cos(p["alpha"])
    M = [[p["M"] + m, m * c, 0], [m * c, m, 0], [0, 0, m * r**2 / 2]]
    near(M, expected["Mass_matrix"])
    motion = solved(M, [0, m * p["g"] * s, 0], [[0, 1, -r]], [0])
    near(motion.qdd, [expected[k] for k in ("Xdd", "sdd", "thetadd")])
    near(motion.multipliers, [-expected["friction_force"]])


@pytest.mark.parametrize("moment", ["start", "leaving the wall"])
def test_sliding_ladder_presses_on_wall_and_floor_as_in_closed_form(moment):
    f = load("sliding_ladder")
    p, expected = f["parameters"], f["expected"]
    half, m, g = p["L"] / 2, p["m"], p["g"]
    if moment == "start":
        theta, rate = f["initial_conditions"]["theta_with_floor"], 0.0
        forces = [expected["wall_force_t0"], expected["floor_force_t0"]]
    else:
        theta, rate = float(expected["leave_theta"]), float(expected["leave_thetadot"])
        forces = [0.0, m * g / 4]
    s, c = sin(theta), cos(theta)
    A = [[1, 0, half * s], [0, 1, -half * c]]
    b = [-half * rate**2 * c, -half * rate**2 * s]
    motion = solved(np.diag([m, m, m * p["L"] ** 2 / 12]), [0, -m * g, 0], A, b)
    near(motion.multipliers, forces, scale=m * g)
    if moment == "start":
        near(motion.qdd[2], expected["thetadd_t0"])


def test_resting_box_stands_on_exactly_the_contacts_that_are_listed_as_active():
    f = load("lcp_box_two_contacts")
    p = f["parameters"]
    M = np.diag([p["m"], p["m"], p["I"]])
    rows = np.array([[0, 1, x] for x, _ in p["contacts_from_com"]])
    assert len(f["expected"]["cases"]) == 4
    for case in f["expected"]["cases"]:
        active = np.array(case["active"], bool)
        lift = case["F_up"]
        Q = [0, lift - p["m"] * p["g"], lift * case["x_F"]]
        motion = solved(M, Q, rows[active], np.zeros(active.sum()))
        near(motion.qdd, case["qdd"], scale=p["g"])
        near(motion.multipliers, np.array(case["lam"])[active], scale=p["m"] * p["g"])


# ----------------------------------------------------------------------------------------
# driven, controlled and free motion


def test_bead_on_a_rotating_hoop_starts_with_the_reduced_acceleration():
    f = load("bead_on_rotating_hoop")
    p, start, expected = f["parameters"], f["initial_conditions"], f["expected"]
    q, v = np.array(start["cartesian_q"]), np.array(start["cartesian_qd"])
    m, R, rate = p["m"], p["R"], p["Omega"]
    # rows |q| = R and -sin(rate t) x + cos(rate t) y = 0, at t = 0
    A, b = [q / R, [0, 1, 0]], [-v @ v / R, 2 * rate * v[0] + rate**2 * q[1]]
    motion = solved(m * np.eye(3), [0, 0, -m * p["g"]], A, b)
    near(motion.qdd, expected["qdd_t0"])
    theta = start["theta_from_bottom"]
    # seen from the turning plane, where the bead is at rest
    plane = motion.qdd + rate**2 * np.array([q[0], 0, 0])
    near(plane @ [cos(theta), 0, sin(theta)] / R, expected["thetadd_t0"])


def test_ball_on_a_turntable_turns_at_two_sevenths_of_the_table():
    f = load("ball_on_turntable")
    p, start, expected = f["parameters"], f["initial_conditions"], f["expected"]
    m, r, rate = p["m"], p["r"], p["Omega"]
    inertia = 2 / 5 * m * r**2
    vx, vy = start["v"]
    M = np.diag([m, m, inertia, inertia, inertia])
    A = [[1, 0, 0, -r, 0], [0, 1, r, 0, 0]]
    motion = solved(M, np.zeros(5), A, [-rate * vy, rate * vx])
    near(motion.qdd, rate / 7 * np.array([-2 * vy, 2 * vx, 5 * vx / r, 5 * vy / r, 0]))
    # the file's own digits: rounding noise of 1e-15 m/s^2 * 1/r shows in its spin column
    near(motion.qdd, expected["acc_t0"], 1e-13)
    near(motion.multipliers, expected["friction_lambda_t0"], 1e-13)


def test_particle_steered_along_an_ellipse_needs_the_closed_form_control_force():
    f = load("tracking_ellipse_kepler")
    p, start, expected = f["parameters"], f["initial_conditions"], f["expected"]
    (x, y), (vx, vy) = start["q"], start["qd"]
    a, b, w = p["a"], p["b"], p["w"]
    Q = -p["GM"] * p["m"] * np.array([x, y]) / np.hypot(x, y) ** 3
    near(Q, expected["F_applied"])
    A = np.array([[2 * x / a**2, 2 * y / b**2], [-y, x]])
    near(A, expected["A"])
    rhs = [-2 * (vx / a) ** 2 - 2 * (vy / b) ** 2, 0]
    near(rhs, expected["b"])
    motion = solved(p["m"] * np.eye(2), Q, A, rhs)
    near(motion.qdd, expected["qdd"])
    near(motion.qdd, -(w**2) * np.array([x, y]))
    near(motion.Q_c, expected["Qc"], scale=1)  # difference of two forces of order 1
    near(motion.multipliers, expected["lam"], scale=1)


def test_force_free_particle_on_a_sphere_has_hertz_curvature_one_over_radius():
    f = load("geodesic_sphere_hertz_curvature")
    p, expected = f["parameters"], f["expected"]
    q, v = np.array(f["initial_conditions"]["q"]), np.array(f["initial_conditions"]["qd"])
    motion = solved(p["m"] * np.eye(3), np.zeros(3), [q / p["R"]], [-v @ v / p["R"]])
    near(motion.multipliers, [-expected["normal_force"]])
    near(motion.zwang, expected["Zwang"])
    near(np.sqrt(motion.zwang / p["m"]) / (v @ v), expected["curvature"])


def test_pursuer_turns_with_the_curvature_of_bouguers_curve():
    f = load("pursuit_constraint")
    p = f["parameters"]
    u, speed, L = p["u"], p["pursuer_speed"], p["L"]
    k = u / speed
    rows = numbers(f["expected"]["rows"])
    assert len(rows) == 4
    for t, x, y, xd, _ in rows:
        motion = solved(np.eye(2), [0, 0], [[u * t - y, -(L - x)]], [-u * xd])
        w = 1 - x / L
        slope = (w**-k - w**k) / 2
        bend = k / (2 * L) * (w ** (-k - 1) + w ** (k - 1))
        exact = speed**2 * bend / (1 + slope**2) ** 2 * np.array([-slope, 1])
        # the rows of the file are good to 14 digits
        near(motion.qdd, exact, 1e-13)


# ----------------------------------------------------------------------------------------
# nonholonomic


def test_chaplygin_sleigh_slows_its_spin_as_in_closed_form():
    f = load("chaplygin_sleigh")
    m, inertia, a = f["parameters"]["m"], f["parameters"]["I_cm"], 0.1
    rows = numbers(f["expected"]["rows"])
    assert len(rows) == 4
    for _, _, _, phi, v, w in rows:
        s, c = sin(phi), cos(phi)
        M = [[m, 0, -m * a * s], [0, m, m * a * c], [-m * a * s, m * a * c, inertia + m * a**2]]
        Q = m * a * w**2 * np.array([c, s, 0])
        motion = solved(M, Q, [[-s, c, 0]], [v * w])
        forward = motion.qdd[:2] @ [c, s]
        near(forward, a * w**2, scale=v * w)
        near(motion.qdd[:2] @ [-s, c], v * w)
        near(motion.qdd[2], -m * a * v * w / (inertia + m * a**2))


def test_knife_edge_on_an_incline_has_blochs_multiplier():
    f = load("knife_edge_incline")
    p = f["parameters"]
    m, spin = p["m"], np.pi / 3
    slope = p["g"] * sin(np.pi / 4)
    rows = numbers(f["expected"]["rows"])
    assert len(rows) == 4
    for t, _, _, phi, multiplier in rows:
        s, c = sin(phi), cos(phi)
        speed = slope / spin * sin(spin * t)
        xd, yd = speed * c, speed * s
        M = np.diag([m, m, p["Theta"]])
        b = -spin * (c * xd + s * yd)
        motion = solved(M, [m * slope, 0, 0], [[s, -c, 0]], [b])
        near(motion.multipliers, [multiplier], scale=m * slope)


def disc(q, u, p, frame):
    """A rolling disc in six maximal coordinates: velocity of its centre, angular velocity.

    Both in space axes; u is the angular velocity in the 'disc' or the 'lean' frame. Returns the
    motion, whose multipliers are the contact force, and ten rates: q1d q2d q3d, velocity of the
    contact point, u1d u2d u3d, acceleration of the contact point.
    """
    m, r, g = p["m"], p["r"], p["g"]
    (s1, s2, s3), (c1, c2, c3) = sin(q[:3]), cos(q[:3])
    yaw = np.array([[c1, -s1, 0], [s1, c1, 0], [0, 0, 1]])
    lean = yaw @ np.array([[1, 0, 0], [0, c2, -s2], [0, s2, c2]])
    body = lean @ np.array([[c3, 0, s3], [0, 1, 0], [-s3, 0, c3]])
    own = body if frame == "disc" else lean
    z, x1, (y2, up) = np.array([0, 0, 1.0]), yaw[:, 0], lean[:, 1:].T
    w = own @ u
    axes = np.column_stack([z, x1, y2])
    qd = np.linalg.solve(axes, w)
    w_lean = w - qd[2] * y2
    J = m * r**2 / 4 * body @ np.diag([1, 2, 1]) @ body.T
    M = np.block([[m * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), J]])
    Q = np.concatenate([-m * g * z, -np.cross(w, J @ w)])
    rho = -r * up
    rho_d = np.cross(w_lean, rho)
    A = np.hstack([np.eye(3), -cross(rho)])  # centre + w x rho = 0 at the contact point
    motion = solved(M, Q, A, -np.cross(w, rho_d))
    acc, alpha = np.split(motion.qdd, 2)
    qdd = np.linalg.solve(
        axes, alpha - qd[0] * qd[1] * np.cross(z, x1) - qd[2] * np.cross(w_lean, y2)
    )
    alpha_lean = alpha - qdd[2] * y2 - qd[2] * np.cross(w_lean, y2)
    rho_dd = np.cross(alpha_lean, rho) + np.cross(w_lean, rho_d)
    u_d = own.T @ (alpha - (0 if frame == "disc" else np.cross(w_lean, w)))
    velocity = -np.cross(w, rho) + rho_d
    return motion, np.concatenate([qd, velocity[:2], u_d, (acc + rho_dd)[:2]])


@pytest.mark.parametrize("case", ["case1", "case2"])
def test_rolling_disc_has_the_rates_and_the_contact_force_published_with_sympy(case):
    f = load("sympy_rolling_disc")
    state = f["initial_conditions"][case]
    motion, rates = disc(np.array(state["q"]), np.array(state["u"]), f["parameters"], "disc")
    expected = f["expected"]
    # published with 14 digits, contact force computed to 13; entries of the rates range from
    # 0.01 to 8
    near(rates, expected[case], 1e-13)
    near(motion.multipliers, expected[f"contact_force_{case}"], 1e-13)


def test_rolling_disc_obeys_the_closed_form_of_sympy_in_the_lean_frame():
    assert load("sympy_rolling_disc_closed_form")["expected"]["rhs"][1] == "-2 u1 u3/3"
    p = {"m": 1.3, "r": 0.45, "g": 9.81}
    for q2, u in [(0.3, [0.4, -1.2, 2.0]), (-0.9, [1.5, 0.7, -0.6]), (0.0, [0.2, 5.0, 0.1])]:
        u1, u2, u3 = u
        _, rates = disc(np.array([0.8, q2, 2.5]), np.array(u), p, "lean")
        r, tan = p["r"], np.tan(q2)
        exact = [
            (4 * p["g"] * sin(q2) + 6 * u2 * u3 * r - r * u3**2 * tan) / (5 * r),
            -2 * u1 * u3 / 3,
            u1 * (-2 * u2 + u3 * tan),
        ]
        near(rates[5:8], exact)


def test_rolling_disc_in_a_steady_turn_keeps_its_lean():
    f = load("rolling_disc_steady_turn")
    p, start, expected = f["parameters"], f["initial_conditions"], f["expected"]
    lean, yaw_rate, spin = start["lean_from_vertical"], start["yaw_rate"], expected["spin_rate"]
    u = np.array([0, spin + yaw_rate * sin(lean), yaw_rate * cos(lean)])
    motion, rates = disc(np.array([0.0, lean, 0.0]), u, p, "lean")
    # single terms of the accelerations are of the size of g/r
    near(rates[5:8], expected["angular_accelerations"], scale=p["g"] / p["r"])
    near(motion.multipliers, expected["contact_force_space_axes_at_yaw0"], 1e-13)


# ----------------------------------------------------------------------------------------
# rigid bodies and closed loops


def test_heavy_top_starts_with_the_euler_acceleration_about_its_fixed_point():
    f = load("heavy_top")
    p = f["parameters"]
    m, J, c = p["m"], np.diag(p["J_cm"]), np.array(p["com_body"], float)
    w = np.array(f["initial_conditions"]["omega_body"], float)
    M = np.diag([m, m, m, *p["J_cm"]])
    Q = np.concatenate([m * np.array(p["gravity"]), -np.cross(w, J @ w)])
    A, b = np.hstack([np.eye(3), cross(c)]), np.cross(w, np.cross(w, c))
    motion = solved(M, Q, A, b)
    near(motion.qdd[3:], numbers(f["expected"]["omega_dot_body_t0"]))


def test_heavy_top_with_a_singular_quaternion_mass_matrix_has_the_same_acceleration():
    f = load("heavy_top")
    p = f["parameters"]
    m, J, c = p["m"], np.diag(p["J_cm"]), np.array(p["com_body"], float)
    e = np.array(f["initial_conditions"]["quaternion_w_first"], float)
    w = np.array(f["initial_conditions"]["omega_body"], float)
    E = np.column_stack([-e[1:], e[0] * np.eye(3) - cross(e[1:])])  # w = 2 E ed in body axes
    ed = E.T @ w / 2
    near(2 * E @ ed, w)
    M = np.zeros((7, 7))
    M[:3, :3], M[3:, 3:] = m * np.eye(3), 4 * E.T @ J @ E  # T = w.J w / 2, rank 3 of 4
    Q = np.concatenate([m * np.array(p["gravity"]), -2 * E.T @ np.cross(w, J @ w)])
    joint = np.hstack([np.eye(3), cross(c) @ (2 * E)])
    A = np.vstack([joint, np.concatenate([np.zeros(3), e])])
    b = np.append(np.cross(w, np.cross(w, c)), -ed @ ed)
    motion = solved(M, Q, A, b)
    near(2 * E @ motion.qdd[3:], numbers(f["expected"]["omega_dot_body_t0"]))


def test_sympy_four_bar_linkage_has_its_published_accelerations():
    f = load("sympy_four_bar")
    p, expected = f["parameters"], f["expected"]
    q, qd = np.array(f["initial_conditions"]["q"]), np.array(f["initial_conditions"]["u"])
    links, rho = [p["l2"], p["l3"], p["l4"]], 997.0
    turned = np.tril(np.ones((3, 3)))  # absolute angles of the links
    bodies, terms = [], []
    for length, angle in zip(links, turned, strict=True):
        centre = point(q, qd, p["l1"], *terms, (length / 2, angle))
        bodies.append((rho * length, rho * length**3 / 12, angle, centre, 0.0))
        terms.append((length, angle))
    M, Q = planar_bodies(3, bodies)
    near(M, expected["M_relative"])
    motion = solved(M, Q, *closures([point(q, qd, p["l1"], *terms)]))
    # the published numbers hold to 1e-10; those computed with the file close the loop to 1e-16
    # only
    near(motion.qdd, expected["relative_udot_computed_here"], 1e-13)
    near(motion.qdd, expected["udot_from_published"], 1e-10)
    near(turned @ motion.qdd, expected["absolute_angular_acc"], 1e-13)
    near(np.abs(motion.multipliers), np.abs(expected["lambda_absolute_angle_form"]), 1e-13)


def row_of_four_bars(N, theta, rate):
    """M, Q, A, b of the N loops of iftomm_a02_n_four_bar.json, three coordinates per rod."""
    g, bodies = 9.81, 2 * N + 1
    upright, level = range(N + 1), range(N + 1, bodies)
    angle = np.where(np.arange(bodies) <= N, theta, 0.0)
    w = np.where(np.arange(bodies) <= N, rate, 0.0)
    M = np.diag(np.tile([1, 1, 1 / 12], bodies))
    Q = np.tile([0, -g, 0], bodies)
    joints = [[(+1, k, -0.5)] for k in upright]
    joints += [[(+1, k, 0.5), (-1, h, -0.5)] for k, h in zip(upright, level, strict=False)]
    joints += [[(+1, k + 1, 0.5), (-1, h, 0.5)] for k, h in zip(upright, level, strict=False)]
    A, b = np.zeros((2 * len(joints), 3 * bodies)), np.zeros(2 * len(joints))
    for row, ends in enumerate(joints):
        for sign, k, arm in ends:
            s, c = arm * sin(angle[k]), arm * cos(angle[k])
            A[2 * row : 2 * row + 2, 3 * k : 3 * k + 3] += sign * np.array([[1, 0, -s], [0, 1, c]])
            b[2 * row : 2 * row + 2] += sign * w[k] ** 2 * np.array([c, s])
    return M, Q, A, b


@pytest.mark.parametrize("N", [2, 40])
def test_coupled_four_bars_in_maximal_coordinates_move_as_their_one_degree_of_freedom(N):
    f = load("iftomm_a02_n_four_bar")
    rows = numbers(f["expected"][f"N{N}"])
    assert len(rows) == 5
    for *_, theta, rate in rows:
        M, Q, A, b = row_of_four_bars(N, theta, rate)
        assert A.shape == (6 * N + 2, 6 * N + 3)
        motion = solved(M, Q, A, b)
        exact = -((N + 1) / 2 + N) * 9.81 * cos(theta) / ((N + 1) / 3 + N)
        found = motion.qdd.reshape(-1, 3)[:, 2]
        scale = max(9.81, rate**2)  # the terms that balance
        near(found[: N + 1], np.full(N + 1, exact), scale=scale)
        near(found[N + 1 :], np.zeros(N), scale=scale)


@pytest.mark.parametrize("N", [2, 40])
def test_coupled_four_bars_gain_one_degree_of_freedom_per_loop_when_flat(N):
    M, Q, A, b = row_of_four_bars(N, -np.pi, 0.0)
    # sin(pi) = 1.2e-16 is far below the rank tolerance of 1e-12: N + 1 degrees of freedom
    # instead of one
    motion = solved(M, Q, A, b, rank=A.shape[1] - (N + 1))
    assert gm.independent_rows(A, M).sum() == A.shape[1] - (N + 1)
    # minimal coordinates: heights of the N + 1 upper joints, each above the foot of its
    # neighbour
    sides = np.full(N + 1, 2.0)
    sides[[0, -1]] = 1
    H = np.diag((1 + sides) / 3) + (np.eye(N + 1, k=1) + np.eye(N + 1, k=-1)) / 6
    heights = np.linalg.solve(H, -9.81 * (1 + sides) / 2)
    near(motion.qdd.reshape(-1, 3)[: N + 1, 2], -heights)


# ----------------------------------------------------------------------------------------
# Coulomb friction as a given non-ideal force


def test_block_on_an_incline_slides_or_sticks_with_the_listed_friction():
    f = load("block_on_incline_stick_slip")
    m, g = f["parameters"]["m"], f["parameters"]["g"]
    assert len(f["expected"]["cases"]) == 4
    for case in f["expected"]["cases"]:
        Q = [m * g * sin(case["alpha"]), -m * g * cos(case["alpha"])]
        motion = solved(m * np.eye(2), Q, [[0, 1]], [0], [case["friction_downhill"], 0])
        near(motion.qdd, [case["acc_downhill"], 0], scale=g)
        near(motion.multipliers_total, [case["N"]])
        near(motion.K, [case["friction_downhill"], 0])


def test_particle_on_a_rough_ring_loses_speed_as_in_closed_form():
    f = load("nonideal_particle_on_horizontal_ring_friction")
    m, R, mu = 0.3, 0.5, f["parameters"]["mu"]
    rows = numbers(f["expected"]["rows"])
    assert len(rows) == 4
    for t, angle, speed in rows:
        n, along = np.array([cos(angle), sin(angle)]), np.array([-sin(angle), cos(angle)])
        normal = m * speed**2 / R
        motion = solved(m * np.eye(2), [0, 0], [n], [-(speed**2) / R], -mu * normal * along)
        near(motion.multipliers_total, [-normal])
        v0 = f["initial_conditions"]["qd"][1]
        slowing = -mu * v0**2 / R / (1 + mu * v0 * t / R) ** 2  # derivative of the closed form
        near(motion.qdd, slowing * along - speed**2 / R * n)
