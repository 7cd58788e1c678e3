"""Joints: they admit exactly the motions that their definition names, and their rows are those.

The oracle of every joint is a family of motions q(t) that its definition admits: body q moves along
a random curve, body p is placed on it by the coordinates of the joint, and both are written in
80-digit arithmetic. A q̈ = b, φ = 0 and φ̇ = 0 have to hold along it, and the number of independent
rows has to leave as many freedoms as the joint has.
"""

import numpy as np
import pytest

import gaussmech as gm
import high_precision as high
from gaussmech.bodies import quaternion_rates
from gaussmech.reading import NAMES, read

EPS = np.finfo(float).eps


def product(a, b):
    """Of quaternions, scalar first."""
    return np.array([
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ])  # fmt: skip


def turn(axis, angle):
    """The quaternion of a turn about a unit axis."""
    half = angle * 0.5
    return np.concatenate([[np.cos(half)], np.sin(half) * np.array(axis)])


def rotated(e, v):
    """R(e) v."""
    conjugate = e * np.array([1, -1, -1, -1])
    return product(product(e, np.concatenate([[0.0], v])), conjugate)[1:]


X, Y, Z = np.eye(3)
POINT_P, POINT_Q = np.array([0.3, -0.2, 0.5]), np.array([-0.4, 0.6, 0.1])
FAR = np.array([1.0, 2.0, -1.0])
TILT = turn(X, 0.4)


def carrier(t, k):
    """A motion of body q in space: place and quaternion."""
    r = np.array([0.3 * np.sin(t + k), 0.2 * t * t, np.cos(2 * t) * 0.1])
    return r, product(turn(Z, 0.7 * np.sin(t)), turn(X, 0.3 + 0.5 * t))


def spatial(relative):
    """q(t) of two rigid bodies: p placed on q by relative(t) -> shift in q's frame, quaternion."""

    def motion(t):
        r, e = carrier(t, 0.2)
        shift, own = relative(t)
        e_p = product(e, own)
        at = r + rotated(e, POINT_Q + shift)
        return np.concatenate([at - rotated(e_p, POINT_P), e_p, r, e])

    return motion


def none(t):
    return np.zeros(3) + 0 * t


# joint -> (constraint of bodies p, q; relative motion; freedom left to the joint)
SPATIAL = {
    "PointOnPoint": (
        lambda p, q: gm.PointOnPoint("j", p.at(POINT_P), q.at(POINT_Q)),
        lambda t: (none(t), product(turn(X, np.sin(t)), product(turn(Y, t * t), turn(Z, t)))), 3),
    "Revolute": (
        lambda p, q: gm.Revolute("j", p.at(POINT_P), q.at(POINT_Q), q.axis(Z)),
        lambda t: (none(t), turn(Z, 0.3 + np.sin(2 * t))), 1),
    "Revolute, axis of p": (
        lambda p, q: gm.Revolute("j", p.at(POINT_P), q.at(POINT_Q), p.axis(Z)),
        lambda t: (none(t), turn(Z, 0.3 + np.sin(2 * t))), 1),
    "Cylindrical": (
        lambda p, q: gm.Cylindrical("j", p.at(POINT_P), q.at(POINT_Q), p.axis(Z)),
        lambda t: (Z * np.sin(3 * t), turn(Z, t * t)), 2),
    "Prismatic": (
        lambda p, q: gm.Prismatic("j", p.at(POINT_P), q.at(POINT_Q), q.axis(Y)),
        lambda t: (Y * (t + np.sin(3 * t)), TILT), 1),
    "Universal": (
        lambda p, q: gm.Universal("j", p.at(POINT_P), q.at(POINT_Q), p.axis(Y), q.axis(X)),
        lambda t: (none(t), product(turn(X, t + 0.2), turn(Y, np.sin(t)))), 2),
    "Weld": (
        lambda p, q: gm.Weld("j", p.at(POINT_P), q.at(POINT_Q)),
        lambda t: (none(t), TILT), 0),
    "PointOnLine": (
        lambda p, q: gm.PointOnLine("j", p.at(POINT_P), q.at(POINT_Q), q.axis(Y)),
        lambda t: (Y * t, product(turn(X, np.sin(t)), turn(Z, t))), 4),
    "PointOnPlane": (
        lambda p, q: gm.PointOnPlane("j", p.at(POINT_P), q.at(POINT_Q), q.axis(Y)),
        lambda t: (X * t + Z * np.sin(t), product(turn(X, np.sin(t)), turn(Y, t))), 5),
}  # fmt: skip


def state_along(motion, t):
    """q, q̇, q̈ of a motion in floats, from 80 digits."""
    q = [float(x) for x in high.values(motion, t)]
    qd = [float(x) for x in high.derivative(motion, (t,), (1.0,))]
    qdd = [float(x) for x in high.second_derivative(motion, (t,), (1.0,))]
    return np.array(q), np.array(qd), np.array(qdd)


def two_bodies(motion, t):
    """A system of two rigid bodies in a state of a motion."""
    q, qd, _ = state_along(motion, t)
    s = gm.System()
    bodies = []
    for k, name in enumerate("pq"):
        r, e = q[7 * k : 7 * k + 3], q[7 * k + 3 : 7 * k + 7]
        v, ed = qd[7 * k : 7 * k + 3], qd[7 * k + 3 : 7 * k + 7]
        omega = 2 * quaternion_rates(e) @ ed
        bodies.append(
            s.add_rigid_body(
                name, mass=1.0 + k, inertia=[0.5, 0.7, 0.9], position=r, quaternion=e, velocity=v,
                angular_velocity=omega,
            )
        )  # fmt: skip
    return s, *bodies


@pytest.mark.parametrize("name", SPATIAL)
def test_a_joint_in_space_admits_exactly_its_own_motions(name):
    build, relative, freedom = SPATIAL[name]
    motion = spatial(relative)
    s, p, q = two_bodies(motion, 0.3)
    s.add_constraint(build(p, q))
    assert s.rank_report().freedom == 6 + freedom
    assert s.rank_report().redundant == []
    model = read(s)
    rows = model.rows["j"]
    for t in np.linspace(0.1, 0.6, 7):
        x, v, a = state_along(motion, t)
        _, _, A, b, _ = s.assemble(0.0, x, v)
        residual, _, rate, _ = model.state(
            ("t", "q", "qd", "p", "x"), 0.0, x, v, np.zeros(0), np.zeros(0)
        )
        size = np.abs(A) @ np.abs(a) + np.abs(b) + 1
        assert np.max(np.abs(residual[rows])) <= 1e-14
        assert np.max(np.abs(rate[rows])) <= 1e-13
        assert np.max(np.abs(A @ a - b) / size) <= 1e-13
    # and no other: moved off by a twist that the joint does not admit
    assert s.solve().status == gm.Status.OK


def planar(relative):
    def motion(t):
        r, a = np.array([0.3 * np.sin(t), 0.2 * t * t]), 0.3 + 0.5 * t
        shift, own = relative(t)
        c, s = np.cos(a), np.sin(a)
        R = np.array([[c, -s], [s, c]])
        e, f = np.cos(a + own), np.sin(a + own)
        back = np.array([[e, -f], [f, e]])
        at = r + R @ (POINT_Q[:2] + shift)
        return np.concatenate([at - back @ POINT_P[:2], [a + own], r, [a]])

    return motion


PLANAR = {
    "PointOnPoint": (
        lambda p, q: gm.PointOnPoint("j", p.at(POINT_P[:2]), q.at(POINT_Q[:2])),
        lambda t: (np.zeros(2) + 0 * t, np.sin(t)), 1),
    "Revolute": (
        lambda p, q: gm.Revolute("j", p.at(POINT_P[:2]), q.at(POINT_Q[:2])),
        lambda t: (np.zeros(2) + 0 * t, np.sin(t)), 1),
    "Prismatic": (
        lambda p, q: gm.Prismatic("j", p.at(POINT_P[:2]), q.at(POINT_Q[:2]), q.axis([1, 0])),
        lambda t: (np.array([1.0, 0.0]) * (t + np.sin(3 * t)), 0.4 + 0 * t), 1),
    "Weld": (
        lambda p, q: gm.Weld("j", p.at(POINT_P[:2]), q.at(POINT_Q[:2])),
        lambda t: (np.zeros(2) + 0 * t, 0.4 + 0 * t), 0),
    "PointOnLine": (
        lambda p, q: gm.PointOnLine("j", p.at(POINT_P[:2]), q.at(POINT_Q[:2]), q.axis([0, 1])),
        lambda t: (np.array([0.0, 1.0]) * t, np.sin(t)), 2),
    "PointOnPlane": (
        lambda p, q: gm.PointOnPlane("j", p.at(POINT_P[:2]), q.at(POINT_Q[:2]), q.axis([0, 1])),
        lambda t: (np.array([1.0, 0.0]) * t, np.sin(t)), 2),
    "Gear": (
        lambda p, q: gm.Gear("j", p, q, 2.5),
        lambda t: (np.array([1.0, 0.5]) * t, 1.5 * (0.3 + 0.5 * t) + 0.2), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANAR)
def test_a_joint_in_the_plane_admits_exactly_its_own_motions(name):
    build, relative, freedom = PLANAR[name]
    motion = planar(relative)
    q, qd, _ = state_along(motion, 0.3)
    s = gm.System()
    p, c = (
        s.add_planar_body(n, mass=1.0, inertia=0.3, position=q[3 * k : 3 * k + 2],
                          angle=q[3 * k + 2], velocity=qd[3 * k : 3 * k + 2],
                          angular_velocity=qd[3 * k + 2])
        for k, n in enumerate("pq")
    )  # fmt: skip
    s.add_constraint(build(p, c))
    assert s.rank_report().freedom == 3 + freedom
    model = read(s)
    for t in np.linspace(0.1, 0.6, 7):
        x, v, a = state_along(motion, t)
        _, _, A, b, _ = s.assemble(0.0, x, v)
        residual, *_ = model.state(NAMES, 0.0, x, v, np.zeros(0), np.zeros(0))
        assert np.max(np.abs(residual)) <= 1e-14
        assert np.max(np.abs(A @ a - b)) <= 1e-13 * (np.abs(A).max() * np.abs(a).max() + 1)


def test_joints_to_the_ground_and_of_particles():
    s = gm.System()
    p = s.add_particle("p", mass=2.0, position=[1.0, 2.0, 3.0], velocity=[0.0, 0.0, 0.0])
    s.add_force(gm.UniformGravity([0, 0, -10.0]))
    s.add_constraint(gm.PointOnPlane("floor", p, s.ground([0, 0, 3.0]), [0, 0, 1]))
    assert np.allclose(s.solve().qdd, 0) and np.allclose(s.solve().Q_c, [0, 0, 20])
    t = gm.System()
    b = t.add_particle("b", mass=1.0, position=[0.0, 0.6, 0.8], velocity=[0, 0, 0])
    t.add_force(gm.UniformGravity([0, 0, -10.0]))
    t.add_constraint(gm.PointOnLine("wire", b, t.ground([0, 0, 0]), [0.0, 0.6, 0.8]))
    assert np.allclose(t.solve().qdd, -8 * np.array([0, 0.6, 0.8]))


# ------------------------------------------------------------------ bodies


def test_a_body_without_torque_keeps_its_angular_momentum_and_energy():
    rng = np.random.default_rng(0)
    J = np.array([[2.0, 0.1, -0.2], [0.1, 3.0, 0.3], [-0.2, 0.3, 4.0]])
    s = gm.System()
    body = s.add_rigid_body("b", mass=2.0, inertia=J, position=[0, 0, 0], velocity=[0, 0, 0],
                            angular_velocity=[0, 0, 0])  # fmt: skip
    e = rng.standard_normal((1000, 4))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    omega = rng.uniform(-3, 3, (1000, 3))
    G = np.moveaxis(np.array(quaternion_rates(e.T)), -1, 0)
    q = np.concatenate([rng.uniform(-1, 1, (1000, 3)), e], axis=1)
    rates = 0.5 * np.einsum("kij,ki->kj", G, omega)
    qd = np.concatenate([rng.uniform(-1, 1, (1000, 3)), rates], axis=1)
    motion = s.solve(0.0, q, qd)
    assert np.all(motion.status == gm.Status.OK) and np.all(motion.nullity == 0)
    alpha = 2 * np.einsum("kij,kj->ki", G, motion.qdd[:, 3:])
    # Euler's equations: J α + ω x J ω = 0; the energy ω.J α is then constant too
    rest = alpha @ J + np.cross(omega, omega @ J)
    assert np.max(np.abs(rest)) <= 1e-12
    assert np.max(np.abs(np.einsum("ki,ki->k", omega, alpha @ J))) <= 1e-12
    assert np.max(np.abs(motion.qdd[:, :3])) <= 1e-14
    assert np.allclose(body.omega(q, qd), omega, atol=1e-14)
    R = body.rotation_at(q)
    world = body.omega(q, qd, frame="world")
    assert np.allclose(world, np.einsum("kij,kj->ki", R, omega), atol=1e-14)
    assert np.allclose(np.einsum("kij,kil->kjl", R, R), np.eye(3), atol=1e-14)
    assert np.allclose(s.solve(0.0, q[:2], qd[:2])["b"].angular_acceleration, alpha[:2])


def test_a_heavy_top_in_steady_precession_is_an_exact_solution():
    # C spin about the axis, leaning θ, precessing at Ω: (C ω3 - A Ω cos θ) Ω = m g l (A about tip)
    m, length, A, C, g, lean, rate = 1.3, 0.4, 0.35, 0.12, 9.81, 0.6, 2.0
    spin = (m * g * length / rate + A * rate * np.cos(lean)) / C  # total ω along the axis
    e = turn(X, lean)
    up = np.array([0, -np.sin(lean), np.cos(lean)])  # the axis in space
    omega = rate * Z + (spin - rate * np.cos(lean)) * up
    place = length * up
    back = e * np.array([1, -1, -1, -1])
    s = gm.System()
    top = s.add_rigid_body(
        "top", mass=m, inertia=[A - m * length**2, A - m * length**2, C], position=place,
        quaternion=e, velocity=np.cross(omega, place),
        angular_velocity=rotated(back, omega))  # fmt: skip
    s.add_force(gm.UniformGravity([0, 0, -g]))
    s.add_constraint(gm.PointOnPoint("tip", top.at([0, 0, -length]), s.ground([0, 0, 0])))
    motion = s.solve()
    # the centre of mass goes round: -Ω² times its distance from the vertical
    centre = -(rate**2) * np.array([place[0], place[1], 0])
    assert np.allclose(motion["top"].acceleration, centre, atol=1e-12)
    # in space dω/dt = Ω ẑ x ω; in the frame of the body the same vector
    expected = rotated(back, np.cross(rate * Z, omega))
    assert np.allclose(motion["top"].angular_acceleration, expected, atol=1e-11)
    tip = motion.reaction("tip")
    assert np.allclose(tip.forces["top"], m * (centre + g * Z), atol=1e-11)
    assert np.allclose(tip.moments["top"], np.cross(-place, tip.forces["top"]), atol=1e-11)


def test_the_norm_of_the_quaternion_is_a_constraint_with_a_name():
    s = gm.System()
    s.add_rigid_body("b", mass=1.0, inertia=[1, 1, 1], position=[0, 0, 0], velocity=[0, 0, 0],
                     angular_velocity=[0, 0, 0])  # fmt: skip
    report = s.rank_report()
    assert (report.rank, report.freedom) == (1, 6)
    assert s.assemble().row_names == ["b.unit"]
    assert np.linalg.matrix_rank(s.assemble()[0]) == 6
    s.q = [0, 0, 0, 1.01, 0.02, 0, 0]
    with pytest.raises(gm.InconsistentStateError, match=r"'b\.unit'"):
        s.solve()
    s.project_start()
    assert np.linalg.norm(s.q[3:]) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quaternion": [1, 1, 0, 0]}, "quaternion of 'b' has length 1.41421; expected 1"),
        ({"inertia": [1, 2]}, r"inertia of 'b' has shape \(2,\)"),
        ({"inertia": [[1, 1, 0], [0, 1, 0], [0, 0, 1]]}, "not symmetric"),
        ({"inertia": [1, -1, 1]}, "has the eigenvalue -1"),
        ({"position": [0, 0]}, r"position of 'b' has shape \(2,\); expected \(..., 3\)"),
        ({"angular_velocity": [0, 0]}, "have shapes"),
        ({"mass": -1}, "mass of 'b' is -1"),
    ],
)
def test_a_rigid_body_that_is_none_gets_its_sentence(change, message):
    given = {"mass": 1.0, "inertia": [1, 1, 1], "position": [0, 0, 0], "velocity": [0, 0, 0],
             "angular_velocity": [0, 0, 0]}  # fmt: skip
    with pytest.raises(ValueError, match=message):
        gm.System().add_rigid_body("b", **(given | change))


def test_bodies_of_the_plane_and_of_space_do_not_mix():
    s = gm.System()
    s.add_rigid_body("b", mass=1.0, inertia=[1, 1, 1], position=[0, 0, 0], velocity=[0, 0, 0],
                     angular_velocity=[0, 0, 0])  # fmt: skip
    with pytest.raises(ValueError, match="planar body 'c' is 2-dimensional in a 3-dimensional"):
        s.add_planar_body("c", mass=1, inertia=1, position=[0, 0], angle=0, velocity=[0, 0],
                          angular_velocity=0)  # fmt: skip


# ------------------------------------------------------------------ redundancy


def box(s, name="box", mass=8.0, at=(0, 0, 1.0)):
    return s.add_rigid_body(name, mass=mass, inertia=[1.0, 2.0, 2.5], position=at,
                            velocity=[0, 0, 0], angular_velocity=[0, 0, 0])  # fmt: skip


def test_a_table_on_four_legs_has_loads_that_are_not_unique_and_one_on_three_has():
    for legs, unique in ((4, False), (3, True)):
        s = gm.System()
        table = box(s)
        s.add_force(gm.UniformGravity([0, 0, -10.0]))
        corners = [(1, 1), (-1, 1), (-1, -1), (1, -1)][:legs]
        for k, (x, y) in enumerate(corners):
            s.add_constraint(gm.PointOnPlane(f"leg {k}", table.at([x, y, -1.0]),
                                             s.ground([0, 0, 0]), [0, 0, 1]))  # fmt: skip
        motion = s.solve()
        loads = [motion.reaction(f"leg {k}") for k in range(legs)]
        assert np.allclose(motion["box"].acceleration, 0, atol=1e-13)
        assert [r.unique for r in loads] == [unique] * legs
        assert sum(r.forces["box"][2] for r in loads) == pytest.approx(80)
        if not unique:
            assert [r.forces["box"][2] for r in loads] == pytest.approx([20] * 4)
            assert s.rank_report().redundant == ["leg 3"]


def test_a_door_on_three_hinges_turns_as_on_one():
    turned = []
    for hinges in (1, 3):
        s = gm.System()
        door = s.add_rigid_body("door", mass=20.0, inertia=[5.0, 6.0, 2.0], position=[0.5, 0, 0],
                                velocity=[0, 0, 0], angular_velocity=[0, 0, 0])  # fmt: skip
        s.add_force(gm.AppliedForce(door.at([0.5, 0, 0]), [0.0, 30.0, -5.0]))
        for k, z in enumerate(np.linspace(-1, 1, hinges)):
            s.add_constraint(gm.Revolute(f"hinge {k}", door.at([-0.5, 0, z]), s.ground([0, 0, z]),
                                         [0, 0, 1]))  # fmt: skip
        motion = s.solve()
        assert s.rank_report().freedom == 1
        turned.append(motion.qdd)
        assert motion["door"].angular_acceleration[2] == pytest.approx(30.0 / (2.0 + 20 * 0.25))
    assert np.allclose(turned[0], turned[1], atol=1e-12)
    assert s.rank_report().redundant == ["hinge 1", "hinge 2"]


def four_bar(redundant):
    """A square four-bar in space, its hinges all along z: planar motion, 3 rows too many."""
    s = gm.System()
    bars = []
    for k, (at, angle) in enumerate(
        [((0, 0.5), np.pi / 2), ((0.5, 1), 0.0), ((1, 0.5), -np.pi / 2)]
    ):
        bars.append(s.add_rigid_body(f"bar {k}", mass=1.0, inertia=[0.01, 0.1, 0.1],
                                     position=[*at, 0], quaternion=turn(Z, angle),
                                     velocity=[0, 0, 0], angular_velocity=[0, 0, 0]))  # fmt: skip
    s.add_force(gm.AppliedForce(bars[1], [3.0, 0, 0]))
    left, right = [-0.5, 0, 0], [0.5, 0, 0]
    ends = [
        (bars[0].at(left), s.ground([0, 0, 0])),
        (bars[0].at(right), bars[1].at(left)),
        (bars[1].at(right), bars[2].at(left)),
        (bars[2].at(right), s.ground([1, 0, 0])),
    ]
    for k, (p, q) in enumerate(ends):
        if redundant or k < 3:
            s.add_constraint(gm.Revolute(f"hinge {k}", p, q, [0, 0, 1]))
        else:
            s.add_constraint(gm.PointOnLine(f"hinge {k}", p, q, [0, 0, 1]))
    return s


def test_a_planar_four_bar_of_hinges_in_space_moves_as_the_one_without_redundant_rows():
    s, lean = four_bar(True), four_bar(False)
    assert s.rank_report().freedom == lean.rank_report().freedom == 1
    assert s.rank_report().redundant == ["hinge 3"] and lean.rank_report().redundant == []
    assert np.allclose(s.solve().qdd, lean.solve().qdd, atol=1e-12)
    # two cranks about their ends and a coupler that only shifts
    turning = 2 * (0.1 + 0.25) + 1.0
    assert s.solve()["bar 1"].acceleration[0] == pytest.approx(3.0 / turning)


def test_a_massless_link_passes_the_force_on():
    s = gm.System()
    block = s.add_planar_body("block", mass=2.0, inertia=1.0, position=[1, 0], angle=0,
                              velocity=[0, 0], angular_velocity=0)  # fmt: skip
    link = s.add_planar_body("link", mass=0.0, inertia=0.0, position=[0.5, 0], angle=0,
                             velocity=[0, 0], angular_velocity=0)  # fmt: skip
    s.add_constraint(gm.PointOnPoint("pin", link.at([0.5, 0]), block))
    s.add_constraint(gm.Prismatic("rail", block, s.ground([0, 0]), [1, 0]))
    s.add_constraint(gm.PointOnLine("end", link.at([-0.5, 0]), s.ground([0, 0]), [1, 0]))
    s.add_force(gm.AppliedForce(link.at([-0.5, 0]), [6.0, 0.0]))
    motion = s.solve()
    assert motion["block"].acceleration == pytest.approx([3.0, 0.0])
    assert motion.reaction("pin").forces["block"] == pytest.approx([6.0, 0.0])


# ------------------------------------------------------------------ rolling, wires, ropes


def test_a_sphere_rolls_down_with_five_sevenths():
    m, r, slope, g = 2.0, 0.3, 0.4, 9.81
    s = gm.System()
    ball = s.add_rigid_body("ball", mass=m, inertia=[0.4 * m * r * r] * 3, position=[0, 0, r],
                            velocity=[0, 0, 0], angular_velocity=[0, 0, 0])  # fmt: skip
    s.add_force(gm.UniformGravity([g * np.sin(slope), 0, -g * np.cos(slope)]))
    s.add_constraint(gm.RollingSphere("rolls", ball, r))
    motion = s.solve()
    assert motion["ball"].acceleration == pytest.approx([5 / 7 * g * np.sin(slope), 0, 0])
    assert motion["ball"].angular_acceleration[1] == pytest.approx(5 / 7 * g * np.sin(slope) / r)
    assert motion.reaction("rolls").forces["ball"] == pytest.approx(
        [-2 / 7 * m * g * np.sin(slope), 0, m * g * np.cos(slope)])  # fmt: skip


def test_a_wheel_rolls_down_and_a_skate_turns():
    m, J, r, g = 2.0, 0.1, 0.3, 9.81
    s = gm.System()
    wheel = s.add_planar_body("wheel", mass=m, inertia=J, position=[0, r], angle=0,
                              velocity=[0, 0], angular_velocity=0)  # fmt: skip
    s.add_force(gm.UniformGravity([3.0, -g]))
    s.add_constraint(gm.RollingWheel("rolls", wheel, r))
    s.add_constraint(gm.PointOnPlane("ground", wheel, s.ground([0, r]), [0, 1]))
    motion = s.solve()
    assert motion["wheel"].acceleration == pytest.approx([3.0 * m / (m + J / r**2), 0])
    assert motion["wheel"].angular_acceleration == pytest.approx(-3.0 * m / (m + J / r**2) / r)
    t = gm.System()
    skate = t.add_planar_body("skate", mass=1.0, inertia=1.0, position=[0, 0], angle=0.5,
                              velocity=2 * np.array([np.cos(0.5), np.sin(0.5)]),
                              angular_velocity=3.0)  # fmt: skip
    t.add_constraint(gm.KnifeEdge("blade", skate, skate.axis([1, 0])))
    across = np.array([-np.sin(0.5), np.cos(0.5)])
    assert t.solve()["skate"].acceleration == pytest.approx(6.0 * across)


def test_a_bead_on_a_helix_slides_as_on_a_slope():
    g, pitch, m = 9.81, 0.3, 0.7
    s = gm.System()
    bead = s.add_particle("bead", mass=m, position=[1, 0, 0], velocity=[0, 1.5, 0.45])
    s.add_force(gm.UniformGravity([0, 0, -g]))
    s.add_constraint(gm.PointOnCurve(
        "wire", bead, lambda u: np.array([np.cos(u), np.sin(u), pitch * u]),
        u=0.0, ud=1.5))  # fmt: skip
    motion = s.solve()
    along = -g * pitch / (1 + pitch**2)
    assert motion.qdd == pytest.approx([-(1.5**2), along, pitch * along, along])
    assert s.coordinate_names[-1] == "wire.u" and s.rank_report().freedom == 1
    moving = gm.System()
    b = moving.add_particle("b", mass=1.0, position=[1.0, 0.0], velocity=[1.0, 2.0])
    moving.add_constraint(gm.PointOnCurve(
        "rod", b, lambda t, u: u * np.array([np.cos(2 * t), np.sin(2 * t)]),
        u=1.0, ud=1.0))  # fmt: skip
    # r'' = r ω² along the rod; 2 ω r' across: in Cartesian axes at t = 0 the former cancels
    assert moving.solve().qdd == pytest.approx([0.0, 4.0, 4.0], abs=1e-13)


def test_atwoods_machine_and_a_gear_train_have_their_published_accelerations():
    s = gm.System()
    a = s.add_particle("A", mass=3.0, position=[-0.2, -1.0], velocity=[0, 0])
    b = s.add_particle("B", mass=1.2, position=[0.2, -2.0], velocity=[0, 0])
    s.add_force(gm.UniformGravity([0, -9.81]))
    s.add_constraint(gm.Pulley("rope", a, s.ground([-0.2, 0]), b, s.ground([0.2, 0])))
    motion = s.solve()
    assert motion["A"].acceleration[1] == pytest.approx(-4.204285714285715)
    assert motion.reaction("rope").forces["A"][1] == pytest.approx(16.817142857142855)
    t = gm.System()
    wheels = [
        t.add_planar_body(f"wheel {k}", mass=1.0, inertia=J, position=[x, 0], angle=0.0,
                          velocity=[0, 0], angular_velocity=0)
        for k, (J, x) in enumerate(((0.02, 0), (0.05, 0.15), (0.11, 0.45)))
    ]  # fmt: skip
    for k, wheel in enumerate(wheels):
        t.add_constraint(gm.Revolute(f"axle {k}", wheel, t.ground(t.q[3 * k : 3 * k + 2])))
    t.add_constraint(gm.Gear("12", wheels[0], wheels[1], -0.1 / 0.05))
    t.add_constraint(gm.Gear("23", wheels[1], wheels[2], -0.2 / 0.1))
    t.add_force(gm.GeneralizedForce([0, 0, 3.0, 0, 0, 0, 0, 0, 0]))
    assert t.solve().qdd[2::3] == pytest.approx(
        [76.19047619047619, -38.095238095238095, 19.047619047619047]
    )


def test_a_rolling_disc_in_a_steady_turn_and_its_published_contact_force():
    # rolling_disc_steady_turn.json: thin disc, lean 0.3, yaw rate 4, spin -6.0427...
    m, r, lean, yaw, spin = 1.0, 0.1, 0.3, 4.0, -6.042715036655137
    e = turn(X, lean)  # axis of the disc: body y, leaning about x
    axis = rotated(e, Y)
    omega = yaw * Z + spin * axis
    contact = rotated(e, -Z) * r
    s = gm.System()
    disc = s.add_rigid_body("disc", mass=m, inertia=[m * r * r / 4, m * r * r / 2, m * r * r / 4],
                            position=-contact, quaternion=e, velocity=-np.cross(omega, contact),
                            angular_velocity=rotated(e * [1, -1, -1, -1], omega))  # fmt: skip
    s.add_force(gm.UniformGravity([0, 0, -9.81]))
    s.add_constraint(gm.RollingDisk("rolls", disc, r, disc.axis([0, 1, 0])))
    motion = s.solve()
    # steady: dω/dt = yaw ẑ x ω in space
    expected = rotated(e * [1, -1, -1, -1], np.cross(yaw * Z, omega))
    assert np.allclose(motion["disc"].angular_acceleration, expected, atol=1e-11)
    force = motion.reaction("rolls").forces["disc"]
    assert force == pytest.approx([7.3e-15, -1.9442536840038844, 9.81], abs=1e-11)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda s, b, p: gm.Revolute("j", b, b), ValueError, "no axis"),
        (lambda s, b, p: gm.Revolute("j", p, p, X), ValueError, "joins no body"),
        (lambda s, b, p: gm.Revolute("j", b, b, 0 * X), ValueError, "axis of 'j'"),
        (lambda s, b, p: gm.Weld("j", b, 3), TypeError, "3 for a point"),
        (lambda s, b, p: gm.Gear("j", b, b, 2.0), TypeError, "expected planar bodies"),
        (lambda s, b, p: gm.KnifeEdge("j", b, X), TypeError, "a point of a planar body"),
        (lambda s, b, p: gm.RollingSphere("j", p, 1.0), TypeError, "expected a rigid body"),
        (lambda s, b, p: gm.RollingDisk("j", b, 1.0, X), TypeError, "body.axis"),
        (lambda s, b, p: gm.PointOnCurve("j", p, 3, u=0), TypeError, "expected a function curve"),
        (lambda s, b, p: b.at([0, 0]), ValueError, "a point of 'b' has shape"),
        (lambda s, b, p: b.axis([0, 0, 0]), ValueError, "has no length"),
        (lambda s, b, p: b.omega(s.q, s.qd, frame="moon"), ValueError, "frame is 'moon'"),
    ],
)  # fmt: skip
def test_a_joint_that_is_built_wrong_gets_its_sentence(build, error, message):
    s = gm.System()
    b = s.add_rigid_body("b", mass=1.0, inertia=[1, 1, 1], position=[0, 0, 0], velocity=[0, 0, 0],
                         angular_velocity=[0, 0, 0])  # fmt: skip
    p = s.add_particle("p", mass=1.0, position=[0, 0, 0], velocity=[0, 0, 0])
    with pytest.raises(error, match=message):
        s.add_constraint(build(s, b, p))
        s.solve()
