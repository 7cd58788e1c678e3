"""Systems: rows derived from functions, faults named, the start repaired, C and Python alike."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import gaussmech as gm
import high_precision as high
from gaussmech import assembly as records
from gaussmech.reading import read

EPS = np.finfo(float).eps
CASES = {
    case["id"]: case
    for case in json.loads(
        (Path(__file__).parent / "data" / "cases.json").read_text(encoding="utf-8")
    )
}


def pendulum(**options):
    s = gm.System(**options)
    bob = s.add_particle("bob", mass=2.0, position=[3.0, -4.0], velocity=[4.0, 3.0])
    s.add_force(gm.UniformGravity([0, -10.0]))
    s.add_constraint(gm.Distance("rod", s.ground([0, 0]), bob))
    return s


def platform(q=None, order=(0, 1, 2)):
    """A platform (x, y, phi) on three equal parallel cranks, at 0.7 rad, turning at 0.9 rad/s."""
    angle = 0.7
    s = gm.System(
        coordinates=["x", "y", "phi"],
        q=[np.cos(angle), np.sin(angle), 0.0],
        qd=[-0.9 * np.sin(angle), 0.9 * np.cos(angle), 0.0],
        mass_matrix=np.diag([2.0, 2.0, 0.3]),
        force=[1.0, -19.62, 0.5],
    )
    for k in order:
        a = (-0.5, 0.0, 0.5)[k]
        s.add_constraint(
            gm.Holonomic(
                f"crank {k + 1}",
                lambda t, q, a=a: (q[0] + a * np.cos(q[2]) - a) ** 2
                + (q[1] + a * np.sin(q[2])) ** 2 - 1.0,
            )
        )  # fmt: skip
    return s


def polar(coriolis, force, m=1.5, **options):
    return gm.System(
        coordinates=["r", "phi"], q=[1.2, 0.3], qd=[0.4, -0.8],
        mass_matrix=lambda t, q: np.array([[m, 0], [0, m * q[0] ** 2]]),
        coriolis=coriolis, force=force, **options,
    )  # fmt: skip


# ------------------------------------------------------------------ cases out of bug reports


def build_sgn_01():
    s = gm.System(coordinates=["x", "y"], q=[3, -4], qd=[4, 3], mass_matrix=2 * np.eye(2),
                  force=[0, -20])  # fmt: skip
    s.add_constraint(gm.Holonomic("rod", lambda t, q: np.sqrt(q @ q) - 5))
    return s


def build_bia_01():
    s = gm.System(coordinates=["x", "y", "a"], q=[0, 0, 0], qd=[0, -6, 3],
                  mass_matrix=np.diag([1, 1, 2]), force=[0, -10, 0])  # fmt: skip
    s.add_constraint(gm.Holonomic("pin", lambda t, q: np.array(
        [q[0] + 2 * np.cos(q[2]) - 2, q[1] + 2 * np.sin(q[2])])))  # fmt: skip
    return s


def build_bia_03():
    s = gm.System(coordinates=["theta", "x", "y"], q=[0, 2, 0], qd=[1, 3, 2],
                  mass_matrix=np.diag([5, 1, 1]))  # fmt: skip
    s.add_constraint(gm.Holonomic(
        "slot", lambda t, q: -np.sin(q[0]) * q[1] + np.cos(q[0]) * q[2]))  # fmt: skip
    return s


def build_rhe_01():
    s = gm.System()
    bead = s.add_particle("bead", mass=1.0, position=[1.5, 0.0], velocity=[1.0, 3.0])
    s.add_constraint(gm.PointOnSurface(
        "rod", bead, lambda t, r: np.cos(2 * t) * r[1] - np.sin(2 * t) * r[0]))  # fmt: skip
    return s


def build_non_01():
    angle = np.arcsin(0.6)
    s = gm.System(coordinates=["x", "y", "theta"], q=[0, 0, angle], qd=[4, 3, 2],
                  mass_matrix=np.eye(3), force=[5, 0, 0])  # fmt: skip
    s.add_constraint(gm.Nonholonomic(
        "blade", lambda t, q, qd: np.sin(q[2]) * qd[0] - np.cos(q[2]) * qd[1]))  # fmt: skip
    return s


def build_non_03():
    s = gm.System()
    p = s.add_particle("p", mass=1.0, position=[0, 0], velocity=[2, 0])
    q = s.add_particle("q", mass=2.0, position=[1, 0], velocity=[0, 3])
    s.add_force(gm.AppliedForce(p, [1.0, 1.0]))
    s.add_force(gm.AppliedForce(q, lambda t, q, qd: np.array([-1.0, 2.0])))
    s.add_constraint(gm.Nonholonomic("square", lambda t, q, qd: qd[0] * qd[2] + qd[1] * qd[3]))
    return s


def build_fri_03():
    s = gm.System(coordinates=["a", "b"], q=[0, 0], qd=[0, 0], mass_matrix=np.eye(2),
                  force=[3, 0])  # fmt: skip
    s.add_constraint(gm.Holonomic("gear", lambda t, q: q[0] - q[1], nonideal=[0.0, -1.0]))
    return s


# fri-01 decides between stick and slip and waits for contact laws
BUILT = {
    "sgn-01-pendulum-unit-gradient": build_sgn_01,
    "bia-01-contact-point-acceleration": build_bia_01,
    "bia-03-slot-coriolis-factor-two": build_bia_03,
    "rhe-01-rotating-rod": build_rhe_01,
    "non-01-skate": build_non_01,
    "non-03-perpendicular-velocities": build_non_03,
    "fri-03-coupled-joints-slide": build_fri_03,
}


@pytest.mark.parametrize("name", BUILT)
def test_model_cases_built_from_their_description(name):
    case = CASES[name]
    s = BUILT[name]()
    motion = s.solve()
    expected, tolerance = case["expected"], case["tolerance"]

    def near(x, key):
        reference = np.array(expected[key], float)
        assert np.max(np.abs(x - reference)) <= tolerance * max(1, np.abs(reference).max()), key

    near(motion.qdd, "qdd")
    near(motion.Q_c, "Q_c")
    near(motion.multipliers_total, "multipliers")
    assert motion.zwang == pytest.approx(expected["zwang"], rel=1e-12)
    M, Q, A, b, C = s.assemble()
    for value, key in ((M, "M"), (Q, "Q"), (A, "A"), (b, "b")):
        assert np.allclose(value, np.array(case["input"][key], float), rtol=1e-14, atol=1e-14), key
    assert (C is None) == ("C" not in case["input"])
    assert gm.cross_check(*s.assemble()) and s.report(motion.qdd)


def test_a_start_off_the_circle_is_refused_with_what_to_do():
    case = CASES["ini-01-off-the-circle"]
    given = case["input"]
    s = gm.System(coordinates=["x", "y"], q=given["q0"], qd=given["qd0"],
                  mass_matrix=given["m"] * np.eye(2), force=[0, -20])  # fmt: skip
    s.add_constraint(gm.Holonomic("circle", lambda t, q: q @ q - 25))
    for action in (s.solve, s.assemble):
        with pytest.raises(gm.InconsistentStateError) as caught:
            action()
        for words in case["expected"]["error"]["must_mention"]:
            assert words in str(caught.value)
        assert caught.value.residual == {"circle": 4.25}
    report = s.project_start()
    x, y = s.q
    assert x * x + y * y == pytest.approx(25, rel=1e-15) and s.q @ s.qd == pytest.approx(
        0, abs=1e-13
    )
    assert report.before["circle"] == 4.25 and abs(report.after["circle"]) < 1e-13
    assert np.isfinite(s.solve().qdd).all()


# ------------------------------------------------------------------ what the issue promises


def test_a_bob_on_a_rod_in_space():
    s = gm.System()
    bob = s.add_particle("bob", mass=1.0, position=[0.6, 0.0, -0.8], velocity=[0, 0, 0])
    s.add_force(gm.UniformGravity([0, 0, -9.81]))
    s.add_constraint(gm.Distance("rod", s.ground([0, 0, 0]), bob))
    motion = s.solve()
    assert np.allclose(motion["bob"].acceleration, 9.81 * np.array([-0.48, 0, -0.36]), rtol=1e-14)
    reaction = motion.reaction("rod")
    assert np.allclose(reaction.forces["bob"], 9.81 * 0.8 * np.array([-0.6, 0, 0.8]), rtol=1e-14)
    assert reaction.unique is True
    assert np.allclose(reaction.generalized, motion.Q_c)
    _, _, A, _, C = s.assemble()
    assert np.allclose(A, [[0.6, 0, -0.8]]) and C is None
    assert gm.cross_check(*s.assemble())
    assert motion.coordinate_names == ["bob.x", "bob.y", "bob.z"]
    assert "rod" in repr(motion) and "bob.z" in repr(motion)


def test_a_platform_off_its_cranks_by_1e_10_moves_as_on_them():
    s = platform()
    right = s.solve()
    assert right.rank == 2
    # one angle: x'' = -sin θ θ'' - cos θ ω², m l² θ'' = torque of the force
    angle, omega = 0.7, 0.9
    turn = (-np.sin(angle) * 1.0 - np.cos(angle) * 19.62) / 2.0
    expected = turn * np.array([-np.sin(angle), np.cos(angle)])
    expected -= omega**2 * np.array([np.cos(angle), np.sin(angle)])
    assert np.allclose(right.qdd, [*expected, 0], atol=1e-13)
    rng = np.random.default_rng(0)
    for _ in range(50):
        step = rng.uniform(-1, 1, 3)
        for size in (1e-14, 1e-13, 1e-12, 1e-11, 1e-10):
            motion = s.solve(q=s.q + size * step)
            assert np.max(np.abs(motion.qdd - right.qdd)) <= 1e-8
            assert motion.rank == 2
    assert "the state is off the constraints by" in s.solve(q=s.q + 1e-9).remark
    assert s.solve().remark == ""


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_the_rank_report_names_the_crank_that_came_last(order):
    report = platform(order=order).rank_report()
    assert (report.rank, report.rows, report.freedom) == (2, 3, 1)
    assert report.redundant == [f"crank {order[-1] + 1}"]
    assert set(report.shared) == {"crank 1", "crank 2", "crank 3"}
    assert not report.vanishing and not report.clashing
    assert f"'crank {order[-1] + 1}' says nothing that the constraints before it" in repr(report)
    assert not platform().solve().reaction("crank 1").unique


def test_contradictory_constraints_are_both_named():
    s = gm.System()
    p = s.add_particle("p", mass=1.0, position=[0.0, 0.0], velocity=[0.0, 0.0])
    s.add_constraint(gm.Prescribed("up", "p.y", lambda t: t**2))
    s.add_constraint(gm.Prescribed("down", "p.y", lambda t: -(t**2)))
    with pytest.raises(gm.InconsistentConstraintsError, match="'up' and 'down'"):
        s.solve()
    report = s.rank_report()
    assert report.clashing == ["up", "down"] and "ask for different accelerations" in repr(report)
    assert s.solve(inconsistent="project").status == gm.Status.PROJECTED
    assert s.solve(errors="status").status == gm.Status.INCONSISTENT
    assert p.name == "p"


def test_a_massless_free_particle_is_named():
    s = pendulum()
    s.add_particle("ghost", mass=0.0, position=[1.0, 0.0], velocity=[0.0, 0.0])
    with pytest.raises(gm.IndeterminateMotionError, match="ghost"):
        s.solve()
    assert np.isfinite(s.solve(indeterminate="minimum_norm").qdd).all()


def test_polar_coordinates_by_derive_and_by_included_agree():
    m = 1.5
    derived = polar("derive", lambda t, q, qd: np.array([1.0, 2.0]))

    def full(t, q, qd):
        return np.array([1 + m * q[0] * qd[1] ** 2, 2 - 2 * m * q[0] * qd[0] * qd[1]])

    included = polar("included", full)
    assert np.allclose(derived.solve().qdd, included.solve().qdd, rtol=1e-15)
    # the same in Cartesian coordinates: a force along r and a torque
    r, rd, phid = 1.2, 0.4, -0.8
    radial = 1.0 / m + r * phid**2
    assert np.allclose(derived.solve().qdd, [radial, (2.0 / m / r - 2 * rd * phid) / r], rtol=1e-14)


def test_a_mass_matrix_function_without_a_word_on_velocity_terms_shows_both_sentences():
    with pytest.raises(ValueError) as caught:
        polar(None, None)
    for words in ('coriolis="derive": force holds', 'coriolis="included": force is the full'):
        assert words in str(caught.value)
    with pytest.raises(ValueError, match="coriolis is 'yes'"):
        polar("yes", None)
    with pytest.raises(ValueError, match="mass_matrix is no function"):
        gm.System(coordinates=["x"], q=[0], qd=[0], mass_matrix=[[1]], coriolis="derive")


def test_velocity_terms_of_a_mass_matrix_that_depends_on_time_and_place():
    def mass(t, q):
        a, b, c = q
        J = np.array([[np.cos(a), t * b, 1.0], [b * c, 2.0, np.sin(t)], [c, a * b, 3.0 + t]])
        return J @ J.T + np.eye(3)

    s = gm.System(coordinates=["a", "b", "c"], q=[0.3, 0.7, -0.4], qd=[0.5, -1.0, 0.8],
                  mass_matrix=mass, coriolis="derive")  # fmt: skip
    rng = np.random.default_rng(0)
    for _ in range(100):
        t, q, v = rng.uniform(0, 1), rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3)
        _, Q, *_ = s.assemble(t, q, v)

        def momenta(t, q):
            return mass(t, q) @ high.lifted(v)  # noqa: B023

        def energy(q, t=t):
            return high.lifted(v) @ mass(high.Mp(t), q) @ high.lifted(v) * high.Mp(0.5)  # noqa: B023

        with high.mp.workdps(high.DIGITS):
            rates = high.derivative(momenta, (t, q), (1.0, v))
            slopes = high.jacobian(energy, (q,), 0)[0]
            h = [x - y for x, y in zip(rates, slopes, strict=True)]
            errors = [abs(high.mp.mpf(float(-x)) - y) for x, y in zip(Q, h, strict=True)]
        assert max(errors) <= 1e-13 * 30


def test_the_knife_edge_of_the_manual():
    m, J, g, a = 1.2, 0.4, 9.81, 0.3
    s = gm.System(coordinates=["x", "y", "phi"], q=[0, 0, 0], qd=[0, 0, 1.0],
                  mass_matrix=np.diag([m, m, J]),
                  force=lambda t, q, qd: np.array([m * g * np.sin(a), 0, 0]))  # fmt: skip
    s.add_constraint(gm.Nonholonomic(
        "blade", lambda t, q, qd: np.sin(q[2]) * qd[0] - np.cos(q[2]) * qd[1]))  # fmt: skip
    assert np.allclose(s.solve().qdd, [g * np.sin(a), 0, 0], atol=1e-14)
    _, _, A, b, _ = s.assemble(0.0, [0, 0, 0.5], [2 * np.cos(0.5), 2 * np.sin(0.5), 1.0])
    assert np.allclose(A, [[np.sin(0.5), -np.cos(0.5), 0]]) and np.allclose(b, [-2.0])


# ------------------------------------------------------------------ states and batches


SYSTEMS = {
    "pendulum": pendulum,
    "platform": platform,
    "polar": lambda: polar("derive", lambda t, q, qd: np.array([t, -qd[1]])),
    "skate": build_non_01,
    "friction": build_fri_03,
    "rheonomic": build_rhe_01,
}
each_system = pytest.mark.parametrize("name", SYSTEMS)


@each_system
def test_solve_and_assembly_have_the_same_bits_alone_and_in_any_place_of_a_batch(name):
    s = SYSTEMS[name]()
    rng = np.random.default_rng(0)
    n = s.q.shape[-1]
    # on and off the constraints, so that some systems have a tolerance of their own
    off = np.where(rng.random((37, 1)) < 0.5, 0.0, 10.0 ** rng.uniform(-13, -8, (37, 1)))
    q = s.q + off * rng.uniform(-1, 1, (37, n))
    qd = s.qd + off * rng.uniform(-1, 1, (37, n))
    t = rng.uniform(0, 1e-9, 37)
    whole = s.solve(t, q, qd)
    assert np.all(whole.status == gm.Status.OK)
    by_assembly = s.assemble(t, q, qd).solve()
    assert all(np.array_equal(x, getattr(by_assembly, k), equal_nan=True)
               for k, x in whole.to_dict().items())  # fmt: skip
    for i in range(37):
        one = s.solve(t[i], q[i], qd[i])
        assert one.qdd.tobytes() == whole.qdd[i].tobytes()
        assert one.multipliers.tobytes() == whole.multipliers[i].tobytes()
        again = s.assemble(t[i], q[i], qd[i]).solve()
        assert again.qdd.tobytes() == one.qdd.tobytes() and again.rank == one.rank


@each_system
def test_batches_broadcast_and_may_be_empty(name):
    s = SYSTEMS[name]()
    n = s.q.shape[-1]
    qd = s.qd * np.linspace(0.5, 1.5, 4)[:, None]
    motion = s.solve(np.zeros((3, 1)), s.q, qd)
    assert motion.qdd.shape == (3, 4, n)
    assert np.array_equal(motion.qdd[1, 2], s.solve(0.0, s.q, qd[2]).qdd)
    strided = np.zeros((4, 2 * n))[:, ::2]
    strided[...] = qd
    assert np.array_equal(s.solve(0.0, s.q, strided[::-1]).qdd, motion.qdd[0, ::-1])
    assert s.solve(q=np.zeros((0, n))).qdd.shape == (0, n)
    assert s.assemble(q=np.zeros((0, n)))[0].shape == (0, n, n)
    many = np.broadcast_to(qd[0], (1000, n))
    assert np.all(s.solve(0.0, s.q, many).qdd == motion.qdd[0, 0])


def test_states_that_do_not_fit_get_a_sentence():
    s = pendulum()
    with pytest.raises(ValueError, match=r"q has shape \(3,\); expected \(..., 2\)"):
        s.solve(q=[1, 2, 3])
    with pytest.raises(ValueError, match="do not broadcast"):
        s.solve(q=np.zeros((2, 2)), qd=np.zeros((3, 2)))
    with pytest.raises(TypeError, match="qd is complex"):
        s.assemble(qd=[1j, 0])
    with pytest.raises(ValueError, match=" is nan"):
        s.solve(q=[np.nan, 1.0])
    with pytest.raises(ValueError, match="inconsistent is 'maybe'"):
        s.solve(inconsistent="maybe")


def test_numbers_may_be_arrays_over_a_batch():
    masses, lengths = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    s = gm.System(parameters={"k": np.array([0.0, 1.0, 2.0]), "g": 10.0})
    bob = s.add_particle("bob", mass=masses, position=np.array([[0.0, -x] for x in lengths]),
                         velocity=[1.0, 0.0])  # fmt: skip
    s.add_force(gm.UniformGravity([0.0, -10.0]))
    s.add_force(gm.GeneralizedForce(lambda t, q, qd, p: np.array([-p["k"] * p.g, 0.0])))
    s.add_constraint(gm.Distance("rod", s.ground([0, 0]), bob, lengths))
    motion = s.solve()
    assert motion.qdd.shape == (3, 2)
    assert np.allclose(motion.qdd[:, 0], -np.array([0, 10, 20]) / masses)
    assert np.allclose(motion.qdd[:, 1], 1 / lengths)
    for i in range(3):
        alone = gm.System()
        one = alone.add_particle("bob", mass=masses[i], position=[0.0, -lengths[i]],
                                 velocity=[1.0, 0.0])  # fmt: skip
        alone.add_force(gm.UniformGravity([0.0, -10.0]))
        alone.add_force(gm.GeneralizedForce([-10.0 * i, 0.0]))
        alone.add_constraint(gm.Distance("rod", alone.ground([0, 0]), one, lengths[i]))
        assert np.allclose(alone.solve().qdd, motion.qdd[i], rtol=1e-14)
    s.set_parameters(k=[1.0, 1.0, 1.0])
    assert np.allclose(s.solve().qdd[:, 0], -10 / masses)
    assert s.parameters["g"] == 10.0
    with pytest.raises(ValueError, match="no parameter has the name 'l'; there are 'k', 'g'"):
        s.set_parameters(l=1.0)
    with pytest.raises(ValueError, match="project_start takes one state"):
        s.project_start()


def test_a_parameter_that_is_not_there_is_named():
    s = gm.System(coordinates=["x"], q=[0], qd=[0], mass_matrix=[[1]],
                  force=lambda t, q, qd, p: -p["stiffness"] * q, parameters={"k": 1.0})  # fmt: skip
    with pytest.raises(ValueError, match="no parameter has the name 'stiffness'; there are 'k'"):
        s.solve()
    s = gm.System(coordinates=["x"], q=[0], qd=[0], mass_matrix=[[1]],
                  force=lambda t, q, qd: -q, parameters={"k": 1.0})  # fmt: skip
    with pytest.raises(ValueError, match="takes 3 positional arguments but 4 were given"):
        s.solve()


# ------------------------------------------------------------------ forces


def space(**velocities):
    s = gm.System()
    rng = np.random.default_rng(1)
    a = s.add_particle(
        "a", mass=2.0, position=rng.uniform(-1, 1, 3), velocity=rng.uniform(-1, 1, 3)
    )
    b = s.add_particle(
        "b", mass=3.0, position=rng.uniform(-1, 1, 3), velocity=rng.uniform(-1, 1, 3)
    )
    return s, a, b


def test_springs_dampers_and_attraction_pull_along_their_line():
    s, a, b = space()
    line = s.q[:3] - s.q[3:]
    distance = np.linalg.norm(line)
    speed = line @ (s.qd[:3] - s.qd[3:]) / distance
    unit = line / distance
    s.add_force(gm.Spring(a, b, stiffness=7.0, length=0.5))
    s.add_force(gm.Damper(a, b, damping=1.5))
    s.add_force(gm.NewtonianAttraction(0.9))
    pull = -unit * (7.0 * (distance - 0.5) + 1.5 * speed + 0.9 * 2.0 * 3.0 / distance**2)
    assert np.allclose(s.assemble()[1], [*pull, *(-pull)], rtol=1e-14)
    assert np.allclose(s.solve().qdd, [*pull / 2, *(-pull) / 3], rtol=1e-14)


def test_a_spring_to_the_ground_and_one_without_length():
    s, a, _ = space()
    s.add_force(gm.Spring(s.ground([0, 0, 0]), a, stiffness=2.0, length=0.0))
    assert np.allclose(s.assemble()[1], [*(-2.0 * s.q[:3]), 0, 0, 0])
    assert np.allclose(s.assemble(q=np.zeros(6))[1], np.zeros(6))


def test_a_planet_about_a_fixed_sun():
    s = gm.System()
    planet = s.add_particle("planet", mass=5.0, position=[2.0, 0.0], velocity=[0.0, 1.0])
    s.add_force(gm.NewtonianAttraction(4.0, s.ground([0, 0]), planet))
    assert np.allclose(s.solve().qdd, [-1.0, 0.0])


def test_a_potential_gives_its_gradient():
    s, _, _ = space()
    s.add_force(gm.Potential(lambda t, q: 0.5 * q @ q * t + np.cos(q[0] * q[5])))
    q = s.q
    Q = s.assemble(0.3)[1]
    expected = -0.3 * q
    expected[0] += np.sin(q[0] * q[5]) * q[5]
    expected[5] += np.sin(q[0] * q[5]) * q[0]
    assert np.allclose(Q, expected, rtol=1e-13)


def test_an_opaque_force_is_called_for_every_state_and_said_in_the_repr():
    calls = []

    def table(t, q, qd):
        calls.append(t)
        return np.interp(q, [0, 1], [0, 5])

    s = gm.System(coordinates=["x"], q=[0.5], qd=[0], mass_matrix=[[2.0]], force=gm.opaque(table))
    assert s.solve().qdd == pytest.approx([1.25])
    assert s.solve(q=[[0.2], [0.4]]).qdd.ravel() == pytest.approx([0.5, 1.0])
    assert "opaque(table (test_system.py, line" in repr(s)
    s.add_force(gm.GeneralizedForce(gm.opaque(lambda t, q, qd: [t])))
    assert s.solve(t=[1.0, 3.0]).qdd.ravel() == pytest.approx([1.75, 2.75])
    s.add_force(gm.GeneralizedForce(gm.opaque(lambda t, q, qd: [1, 2])))
    with pytest.raises(ValueError, match=r"returned shape \(2,\); expected \(1,\)"):
        s.solve()


# ------------------------------------------------------------------ constraints


def test_derived_rows_agree_with_80_digit_differences_for_every_constraint():
    def holonomic(t, q):
        return np.array([np.sin(q[0] * t) * q[1] - q[2] ** 2, q[3] * q[4] + np.exp(-q[5]) * t])

    def nonholonomic(t, q, qd):
        return np.sin(q[0]) * qd[1] ** 2 + t * qd[2] * qd[3] - q[4] * qd[5]

    def pfaffian(t, q):
        return np.array([np.cos(q[0]), t, q[1] * q[2], 0.0, 1.0, q[5], 0.0, q[7], t])

    s = gm.System()
    a = s.add_particle("a", mass=1.0, position=[0.3, 0.5, 0.8], velocity=[0.1, 0.2, -0.4])
    b = s.add_particle("b", mass=2.0, position=[1.1, -0.4, 0.6], velocity=[-0.3, 0.6, 0.2])
    origin = s.ground([0.1, 0.2, 0.3])
    constraints = [
        (gm.Holonomic("h", holonomic), holonomic, True),
        (gm.Nonholonomic("n", nonholonomic), nonholonomic, False),
        (gm.Pfaffian("p", pfaffian, lambda t, q: t * q[0]),
         lambda t, q, qd: pfaffian(t, q) @ qd + t * q[0], False),
        (gm.Distance("d", a, b, 1.0),
         lambda t, q: np.linalg.norm(q[:3] - q[3:6]) - 1.0, True),
        (gm.Distance("g", origin, a, 1.0),
         lambda t, q: np.linalg.norm(q[:3] - origin.place) - 1.0, True),
        (gm.Prescribed("s", "b.y", lambda t: np.sin(3 * t)),
         lambda t, q: q[4] - np.sin(3 * t), True),
        (gm.PointOnSurface("o", a, lambda t, r: r[0] * r[1] - t * r[2]),
         lambda t, q: q[0] * q[1] - t * q[2], True),
    ]  # fmt: skip
    middle = s.add_particle("c", mass=1.0, position=[0.7, 0.05, 0.7], velocity=[0.0, 0.1, 0.2])
    rod = gm.Rod("r", a, middle, b)
    share, whole = 0.5, np.linalg.norm([0.8, -0.9, -0.2])
    constraints.append(
        (
            rod,
            lambda t, q: np.concatenate(
                [[np.linalg.norm(q[3:6] - q[:3]) - whole], q[6:] - q[:3] - (q[3:6] - q[:3]) * share]
            ),
            True,
        )
    )
    for constraint, *_ in constraints:
        s.add_constraint(constraint)
    rng = np.random.default_rng(2)
    model = read(s)
    for _ in range(100):
        t, q, v = (
            rng.uniform(0.1, 1),
            rng.uniform(0.2, 1, 9) * [1, 1, 1, -1, 1, -1, 1, -1, 1],
            rng.uniform(-1, 1, 9),
        )
        _, _, A, b, _ = s.assemble(t, q, v)
        scale = s.assemble(t, q, v).row_scale
        error = s.assemble(t, q, v).b_error / (16 * EPS)
        residual, _, rate, _ = model.state(
            ("t", "q", "qd", "p", "x"), t, q, v, np.zeros(0), np.zeros(0)
        )
        for constraint, f, is_holonomic in constraints:
            k = model.rows[constraint.name]
            if is_holonomic:
                exact_A = high.jacobian(f, (t, q), 1)
                exact_b = [-x for x in high.second_derivative(f, (t, q), (1.0, v))]
                exact_rate = high.derivative(f, (t, q), (1.0, v))
                assert high.worst(rate[k], exact_rate, scale[k] * 1.5) <= 1e-13
                value = high.values(f, t, q)
            else:
                exact_A = high.jacobian(f, (t, q, v), 2)
                exact_b = [-x for x in high.derivative(f, (t, q, v), (1.0, v, None))]
                value = high.values(f, t, q, v)
            assert high.worst(A[k], exact_A, np.repeat(scale[k], 9)) <= 1e-13
            assert high.worst(b[k], exact_b, error[k]) <= 1e-13
            assert high.worst(residual[k], value, np.full(len(value), 3.0)) <= 1e-13


def test_a_rod_keeps_its_points_in_line_with_independent_rows():
    s = gm.System()
    p = s.add_particle("p", mass=1.0, position=[0.3, -0.4], velocity=[0.0, 0.0])
    q = s.add_particle("q", mass=2.5, position=[0.9, -1.2], velocity=[0.0, 0.0])
    s.add_force(gm.UniformGravity([0, -9.81]))
    s.add_constraint(gm.Rod("rod", s.ground([0, 0]), p, q))
    motion = s.solve()
    assert motion.rank == 3 and s.rank_report().freedom == 1
    turn = -9.81 * 0.6 * (1.0 * 0.5 + 2.5 * 1.5) / (1.0 * 0.25 + 2.5 * 2.25)
    assert np.allclose(motion.qdd, turn * np.array([0.4, 0.3, 1.2, 0.9]), rtol=1e-13)
    assert set(motion.reaction("rod").forces) == {"p", "q"}
    two = gm.System()
    a = two.add_particle("a", mass=1.0, position=[0, 0, 0], velocity=[0, 0, 0])
    b = two.add_particle("b", mass=1.0, position=[1, 0, 0], velocity=[0, 0, 0])
    c = two.add_particle("c", mass=1.0, position=[2, 0, 0], velocity=[0, 0, 0])
    two.add_constraint(gm.Rod("rod", a, b, c))
    assert two.rank_report().freedom == 5
    with pytest.raises(ValueError, match="1 points; expected two or more"):
        gm.Rod("rod", a)


def test_a_rod_whose_points_are_not_in_line_is_refused():
    s = gm.System()
    p = s.add_particle("p", mass=1.0, position=[0.5, 0.1], velocity=[0.0, 0.0])
    q = s.add_particle("q", mass=1.0, position=[1.0, 0.0], velocity=[0.0, 0.0])
    s.add_constraint(gm.Rod("rod", s.ground([0, 0]), p, q))
    with pytest.raises(gm.InconsistentStateError, match="'rod"):
        s.solve()


def test_a_prescribed_coordinate_needs_the_driving_force():
    s = gm.System(coordinates=["x", "y"], q={"x": 0, "y": 1}, qd={"y": 0, "x": 3},
                  mass_matrix=[[2, 0], [0, 4]], force=[5, 1])  # fmt: skip
    s.add_constraint(gm.Prescribed("drive", "x", lambda t: 3 * t + 0.5 * 7 * t**2))
    motion = s.solve()
    assert motion.qdd == pytest.approx([7, 0.25], rel=1e-14)
    assert motion.multipliers == pytest.approx([2 * 7 - 5], rel=1e-14)


def test_accelerations_and_non_ideal_parts_go_in_as_they_stand():
    s = gm.System(coordinates=["x", "y"], q=[0, 0], qd=[1, 0], mass_matrix=np.eye(2))
    s.add_constraint(gm.Acceleration("a", [0, 1], 2.0, nonideal=lambda t, q, qd: -0.5 * qd))
    motion = s.solve()
    assert motion.qdd.tolist() == [-0.5, 2.0] and motion.K.tolist() == [-0.5, 0]
    t = gm.System(coordinates=["x", "y"], q=[0, 0], qd=[1, 0], mass_matrix=np.eye(2))
    t.add_constraint(gm.Acceleration("a", lambda t, q, qd: [[0, 1 + t], [1, 0]],
                                     lambda t, q, qd: [2 * qd[0], t]))  # fmt: skip
    assert t.solve(1.0).qdd.tolist() == [1.0, 1.0]


def test_a_velocity_free_nonholonomic_constraint_is_sent_to_holonomic():
    s = pendulum()
    s.add_constraint(gm.Nonholonomic("wall", lambda t, q, qd: q[0] - 3))
    with pytest.raises(ValueError, match=r"'wall' does not contain the velocities: use Holonomic"):
        s.solve()
    r = pendulum()
    r.add_constraint(gm.Holonomic("clock", lambda t, q: t - 1))
    with pytest.raises(ValueError, match="'clock' does not contain the coordinates"):
        r.solve()


def test_a_row_that_vanishes_by_cancellation_is_seen_as_zero():
    s = gm.System(coordinates=["x", "a"], q=[1.0, np.pi], qd=[0, 0], mass_matrix=np.eye(2),
                  force=[1, 1])  # fmt: skip
    s.add_constraint(gm.Holonomic("foot", lambda t, q: np.cos(q[1]) + 1))
    motion = s.solve()
    assert motion.vanished.tolist() == [True] and motion.qdd.tolist() == [1, 1]
    assert s.rank_report().vanishing == ["foot"]


def test_targets_that_are_rounding_are_no_clash():
    # b = 1e-17 against 3e-17 where everything else is zero
    s = gm.System(coordinates=["x", "y"], q=[0.1, 0.2], qd=[0.3, 0.0], mass_matrix=np.eye(2))
    for k, c in enumerate((0.1, 0.7)):
        s.add_constraint(gm.Holonomic(
            f"c{k}", lambda t, q, c=c: (q[1] - 0.2) * (1 + c) + c * (q[0] - 0.1 - 0.3 * t) ** 2 / 3
        ))  # fmt: skip
    motion = s.solve(0.1, [0.13, 0.2], [0.3, 0.0])
    assert motion.status == gm.Status.OK and np.max(np.abs(motion.qdd)) < 1e-15


def test_jacobians_and_rates_of_the_user_are_checked():
    def phi(t, q):
        return q[0] ** 2 - t * q[1]

    good = {"jacobian": lambda t, q: np.array([[2 * q[0], -t]]),
            "rate": lambda t, q, qd: 2 * q[0] * qd[0] - t * qd[1] - q[1]}  # fmt: skip
    bad = {"jacobian": lambda t, q: np.array([[q[0], -t]]),
           "rate": lambda t, q, qd: 2 * q[0] * qd[0] - t * qd[1]}  # fmt: skip

    def system(**given):
        s = gm.System(coordinates=["x", "y"], q=[0.0, 0.5], qd=[1.0, 0.0], mass_matrix=np.eye(2))
        s.add_constraint(gm.Holonomic("c", phi, **given))
        return s

    assert system(**good).assemble(0.2, [0.3, 0.45], [0, 0])[2].tolist() == [[0.6, -0.2]]
    with pytest.raises(ValueError, match=r"jacobian of 'c'\[0, 0\] is .* what is derived"):
        system(jacobian=bad["jacobian"]).assemble(q=[1, 1])
    with pytest.raises(ValueError, match=r"rate of 'c'\[0\] is .* what is derived"):
        system(rate=bad["rate"]).assemble(q=[1, 1])


# ------------------------------------------------------------------ faults


def test_all_faults_are_collected_and_raised_once():
    s = gm.System(coordinates=["x", "y"], q=[0, 0], qd=[0, 0])
    s.add_constraint(gm.Prescribed("drive", "z", lambda t: t))
    s.add_constraint(gm.Nonholonomic("v", lambda t, q, qd: q[0]))
    s.add_constraint(gm.Holonomic("branch", lambda t, q: q[0] if q[1] > 0 else 0))
    with pytest.raises(ValueError) as caught:
        s.solve()
    message = str(caught.value)
    assert message.startswith("the system has 4 faults:\n")
    for words in ("mass_matrix is missing for the coordinates 'x' and 'y'",
                  "Prescribed 'drive' has the coordinate 'z'; expected one of 'x', 'y'",
                  "'v' does not contain the velocities", "gm.where(condition, a, b)"):  # fmt: skip
        assert words in message


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: gm.System(coordinates="x", q=[0], qd=[0]), TypeError, "a list of names"),
        (lambda: gm.System(coordinates=["x", "x"], q=[0, 0], qd=[0, 0]), ValueError, "named twice"),
        (lambda: gm.System(coordinates=["x"], q=[0, 1], qd=[0]), ValueError, "q has shape"),
        (lambda: gm.System(coordinates=["x"], q={"y": 1}, qd=[0]), ValueError, "no coordinate 'y'"),
        (lambda: gm.System(coordinates=["x"], q={}, qd=[0]), ValueError, "no value for 'x'"),
        (lambda: gm.System(coordinates=["x"], qd=[0]), ValueError, "q is not given"),
        (lambda: gm.System(mass_matrix=np.eye(2)), ValueError, "without coordinates; name them"),
        (lambda: gm.System(dimension=4), ValueError, "dimension is 4"),
        (lambda: gm.System(parameters=[1]), TypeError, "parameters is a list"),
        (lambda: gm.System().solve(), ValueError, "no coordinates; add a particle"),
        (lambda: pendulum().add_particle("bob", mass=1, position=[0, 0], velocity=[0, 0]),
         ValueError, "the name 'bob' is taken"),
        (lambda: pendulum().add_particle("p", mass=-1, position=[0, 0], velocity=[0, 0]),
         ValueError, "mass of 'p' is -1"),
        (lambda: pendulum().add_particle("p", mass=1, position=[0, 0, 0], velocity=[0, 0, 0]),
         ValueError, "particle 'p' is 3-dimensional in a 2-dimensional system"),
        (lambda: pendulum().add_particle("p", mass=1, position=[0, 0], velocity=[0]),
         ValueError, "velocity of 'p' has shape"),
        (lambda: pendulum().add_particle("p", mass=1, position=[np.nan, 0], velocity=[0, 0]),
         ValueError, "not finite"),
        (lambda: pendulum().ground([1, 2, 3]), ValueError, "a ground point is 3-dimensional"),
        (lambda: pendulum().add_force(3), TypeError, "expected a force such as"),
        (lambda: pendulum().add_constraint(3), TypeError, "expected one such as"),
        (lambda: pendulum().add_constraint(gm.Holonomic("rod", lambda t, q: q[0])),
         ValueError, "the name 'rod' is taken"),
        (lambda: gm.Holonomic(lambda t, q: q[0], "rod"), TypeError, "the name comes first"),
        (lambda: gm.Holonomic("a", 3), TypeError, "expected a function phi"),
        (lambda: gm.Distance("a", 1, 2), TypeError, "1 for a point; expected a particle"),
        (lambda: gm.opaque(3), TypeError, "expected a function"),
        (lambda: gm.Potential(3), TypeError, "expected a function V"),
        (lambda: setattr(pendulum(), "q", [1, 2, 3]), ValueError, r"q has shape \(3,\)"),
    ],
)  # fmt: skip
def test_what_is_built_wrong_gets_its_sentence(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_a_point_of_another_system_is_refused():
    s, other = pendulum(), pendulum()
    bob = other._bodies[0]
    with pytest.raises(ValueError, match="holds 'bob', which is not in this system"):
        s.add_constraint(gm.Distance("d", s.ground([0, 0]), bob))


def test_a_force_of_the_wrong_size_is_named():
    s = pendulum()
    s.add_force(gm.GeneralizedForce(lambda t, q, qd: np.array([1.0, 2.0, 3.0])))
    with pytest.raises(
        ValueError, match=r"GeneralizedForce: .* returns shape \(3,\); expected \(2\)"
    ):
        s.solve()


def test_a_function_that_depends_on_a_global_is_named():
    counter = iter(range(1000))
    s = pendulum()
    s.add_force(gm.GeneralizedForce(lambda t, q, qd: q * next(counter)))
    with pytest.raises(ValueError, match=r"GeneralizedForce: .* depends on something beside"):
        s.solve()


# ------------------------------------------------------------------ the start


def four_bar(angle=1.0):
    s = gm.System()
    ends = np.array([np.cos(angle), np.sin(angle)])
    a = s.add_particle("a", mass=1.0, position=ends, velocity=[0, 0])
    b = s.add_particle("b", mass=1.0, position=[3.0, 2.5], velocity=[0, 0])
    s.add_constraint(gm.Distance("crank", s.ground([0, 0]), a, 1.0))
    s.add_constraint(gm.Distance("coupler", a, b, 3.0))
    s.add_constraint(gm.Distance("rocker", b, s.ground([4, 0]), 2.5))
    return s


def test_the_start_closes_in_the_mass_metric_with_what_is_held_exactly_held():
    s = four_bar()
    held = s.q[:2].copy()
    report = s.project_start(hold=["a.x", "a.y"])
    assert np.array_equal(s.q[:2], held)
    a, b = s.q[:2], s.q[2:]
    for p, q, length in ((a, b, 3.0), (b, np.array([4, 0]), 2.5)):
        assert np.linalg.norm(p - q) == pytest.approx(length, rel=1e-15)
    assert set(report.moved) == {"b.x", "b.y"} and "b.x" in repr(report)
    assert max(map(abs, report.after.values())) < 1e-14
    assert report.iterations < 10


def test_a_projection_moves_as_little_as_possible_in_the_mass_metric():
    s = gm.System()
    light = s.add_particle("light", mass=1e-3, position=[0.0, 0.0], velocity=[0.0, 0.0])
    heavy = s.add_particle("heavy", mass=1e3, position=[2.0, 0.0], velocity=[1.0, 0.0])
    s.add_constraint(gm.Distance("d", light, heavy, 1.0))
    s.project_start()
    assert s.q == pytest.approx([1.0, 0, 2.0, 0], abs=2e-6)
    assert s.qd == pytest.approx([1.0, 0, 1.0, 0], abs=2e-6)


@pytest.mark.parametrize("seed", range(10))
def test_starts_off_by_1e_2_come_back(seed):
    rng = np.random.default_rng(seed)
    for build in (pendulum, platform, four_bar, build_bia_01):
        s = build()
        if build is four_bar:
            s.project_start()
        s.q = s.q + 1e-2 * rng.uniform(-1, 1, s.q.shape)
        s.qd = s.qd + 1e-2 * rng.uniform(-1, 1, s.q.shape)
        before = s.q.copy()
        if build is pendulum:
            s.add_constraint(gm.Holonomic("length", lambda t, q: q @ q - 25.0))
        report = s.project_start()
        assert max(map(abs, report.after.values())) <= 1e-12
        assert np.max(np.abs(s.q - before)) <= 0.2
        assert np.isfinite(s.solve().qdd).all()


def test_velocities_that_are_nonlinearly_constrained_are_projected_too():
    s = build_non_03()
    s.qd = [2.0, 0.1, 0.3, 3.0]
    s.project_start(hold_rate=["p.x"])
    assert s.qd[0] == 2.0
    assert s.qd[0] * s.qd[2] + s.qd[1] * s.qd[3] == pytest.approx(0, abs=1e-14)


def test_a_start_that_cannot_close_says_which_constraint_is_left():
    s = four_bar()
    with pytest.raises(gm.InconsistentStateError, match="cannot be closed: the places still miss"):
        s.project_start(hold=["a.x", "a.y", "b.x", "b.y"])
    t = gm.System(coordinates=["x"], q=[0.5], qd=[0], mass_matrix=[[1.0]])
    t.add_constraint(gm.Holonomic("never", lambda t, q: q[0] ** 2 + 1.0))
    with pytest.raises(gm.InconsistentStateError, match="'never'"):
        t.project_start()
    assert t.q.tolist() == [0.5]
    with pytest.raises(ValueError, match="hold has 'z'; expected coordinates out of"):
        s.project_start(hold=["z"])
    with pytest.raises(TypeError, match="hold is the string"):
        s.project_start(hold="a.x")


def test_a_velocity_off_the_constraint_is_named_by_its_rate():
    s = pendulum()
    s.qd = [1.0, 1.0]
    with pytest.raises(gm.InconsistentStateError, match=r"constraint 0 'rod' \(dphi/dt = -0.2\)"):
        s.solve()


def test_the_first_system_of_a_batch_that_is_off_is_named():
    s = pendulum()
    s.q = [[3.0, -4.0], [3.0, -4.5]]
    s.add_constraint(gm.Holonomic("circle", lambda t, q: q @ q - 25.0))
    with pytest.raises(gm.InconsistentStateError, match=r"at index \(1,\)") as caught:
        s.solve()
    assert caught.value.index == (1,)


# ------------------------------------------------------------------ records


def test_motions_of_models_look_up_and_say_what_is_missing():
    s = pendulum()
    motion = s.solve()
    assert motion["bob"].position.tolist() == [3, -4] and motion["bob"].velocity.tolist() == [4, 3]
    assert np.allclose(motion["bob"].constraint_force, motion.Q_c)
    assert "acceleration" in repr(motion["bob"]) and "bob" in repr(motion.reaction("rod"))
    with pytest.raises(KeyError, match="no body has the name 'rod'; there are 'bob'"):
        motion["rod"]
    with pytest.raises(KeyError, match="no constraint has the name 'bob'; there are 'rod'"):
        motion.reaction("bob")
    part = s.solve(outputs=["qdd"])
    assert part.Q_c is None and np.array_equal(part.qdd, motion.qdd)
    with pytest.raises(ValueError, match="reaction needs the multipliers"):
        part.reaction("rod")
    with pytest.raises(ValueError, match="ambiguous"):
        bool(motion)
    many = s.solve(qd=np.tile(s.qd, (5, 1)))
    assert many.reaction("rod").forces["bob"].shape == (5, 2)
    assert many["bob"].acceleration.shape == (5, 2)


def test_an_assembly_is_five_arrays_with_names():
    s = platform()
    a = s.assemble()
    assert a[4] is None and isinstance(a, tuple) and len(a) == 5
    assert a.row_names == ["crank 1", "crank 2", "crank 3"]
    assert a.coordinate_names == ["x", "y", "phi"]
    assert a.row_scale.shape == (3,) and a.rtol == 1e-12
    assert s.assemble(q=s.q + 1e-9).rtol > 1e-10
    assert (
        repr(a)
        == "Assembly of 3 coordinates (x, y and phi) and 3 rows (crank 1, crank 2 and crank 3)"
    )
    motion = a.solve(outputs=["qdd"])
    assert motion.Q_c is None and motion.row_names == a.row_names
    assert isinstance(s.solve(), records.ModelMotion)


def test_a_system_prints_what_it_is_made_of():
    s = pendulum()
    text = repr(s)
    assert "System of 2 coordinates" in text and "particle     bob, mass 2.0" in text
    s.solve()
    assert "Distance('rod', ground, bob, length=5 at the start)" in repr(s)
    assert re.search(r"force +UniformGravity", text)


def test_the_report_on_ones_own_acceleration_uses_the_names():
    s = pendulum()
    motion = s.solve()
    assert s.report(motion.qdd)
    verdict = s.report(motion.qdd * 1.1)
    assert not verdict and "'rod' (row 0)" in verdict["constraint_residual"].remark


def test_programs_of_a_model_survive_changes():
    s = pendulum()
    first = s.solve().qdd
    s.add_force(gm.GeneralizedForce([1.0, 0.0]))
    assert not np.array_equal(s.solve().qdd, first)
    s.t = 2.0
    assert np.isfinite(s.solve().qdd).all()
    assert pickle.loads(pickle.dumps(gm.Program(phi_of_pickle, (), 2)))(0.0, [1.0, 2.0]) == 5.0


def phi_of_pickle(t, q):
    return q @ q
