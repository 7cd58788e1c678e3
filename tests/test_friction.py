"""Friction: from the reaction of the whole constraint, solved for together with the motion."""

import numpy as np
import pytest

import gaussmech as gm

G = 9.81


def ring(law, speed=3.0):
    """A particle on a horizontal ring of radius 0.5, without gravity."""
    s = gm.System()
    p = s.add_particle("p", mass=0.3, position=[0.5, 0.0], velocity=[0.0, speed])
    s.add_constraint(gm.Distance("ring", p, s.ground([0, 0]), nonideal=law))
    return s


def test_dry_friction_on_a_ring_slows_with_the_square_of_the_speed():
    # nonideal_particle_on_horizontal_ring_friction.json: v' = -mu v²/R
    for speed in (3.0, -3.0, 1e-3):
        motion = ring(gm.CoulombFriction(0.2), speed).solve()
        slowing = -np.sign(speed) * 0.2 * speed**2 / 0.5
        assert motion["p"].acceleration == pytest.approx([-(speed**2) / 0.5, slowing])
        assert motion.K[1] == pytest.approx(0.3 * slowing)


def test_viscous_friction_takes_the_sliding_velocity():
    motion = ring(gm.ViscousFriction(0.7)).solve()
    assert motion["p"].acceleration[1] == pytest.approx(-0.7 * 3.0 / 0.3)


def helix(rows):
    """A bead on a helix, written by some rows of functions of its place."""

    def surfaces(r):
        cylinder = r[0] ** 2 + r[1] ** 2 - 1.0
        screw = r[1] * np.cos(r[2] / 0.3) - r[0] * np.sin(r[2] / 0.3)
        return rows @ np.array([cylinder, screw])

    s = gm.System()
    bead = s.add_particle("bead", mass=0.7, position=[1, 0, 0], velocity=[0, 1.5, 0.45])
    s.add_force(gm.UniformGravity([0, 0, -G]))
    law = gm.CoulombFriction(0.2)
    s.add_constraint(gm.PointOnSurface("wire", bead, surfaces, nonideal=law))
    return s


def test_friction_does_not_change_when_the_rows_of_a_constraint_are_mixed():
    rng = np.random.default_rng(0)
    found = []
    for rows in [np.eye(2), 1e-3 * np.eye(2), np.array([[1.0, 1.0], [0.0, 1.0]]),
                 *rng.uniform(-2, 2, (5, 2, 2)), np.vstack([np.eye(2), [[1.0, 2.0]]])]:  # fmt: skip
        s = helix(rows)
        motion = s.solve()
        found.append(motion.qdd)
        assert gm.cross_check(*s.assemble())
        assert s.report(motion.qdd)
    assert np.allclose(found, found[0], rtol=1e-11)
    # by hand: tangential force m g.T - mu N, N the size of the reaction across
    along = np.array([0, 1, 0.3]) / np.sqrt(1.09)
    reaction = 0.7 * (found[0] - [0, 0, -G])
    across = reaction - (reaction @ along) * along
    assert reaction @ along == pytest.approx(-0.2 * np.linalg.norm(across), rel=1e-12)


def test_a_wire_given_as_a_curve_has_the_friction_of_the_one_given_by_surfaces():
    s = gm.System()
    bead = s.add_particle("bead", mass=0.7, position=[1, 0, 0], velocity=[0, 1.5, 0.45])
    s.add_force(gm.UniformGravity([0, 0, -G]))
    s.add_constraint(gm.PointOnCurve(
        "wire", bead, lambda u: np.array([np.cos(u), np.sin(u), 0.3 * u]), u=0.0, ud=1.5,
        nonideal=gm.CoulombFriction(0.2)))  # fmt: skip
    assert np.allclose(s.solve()["bead"].acceleration, helix(np.eye(2)).solve().qdd, rtol=1e-12)


def test_friction_on_a_moving_wire_is_against_the_sliding_along_it():
    # a bead on a rod that turns at 2 rad/s, sliding outwards at 1: the rod pushes with 2 m ω r'
    for speed in (1.0, -1.0):
        s = gm.System()
        b = s.add_particle("b", mass=1.5, position=[1.0, 0.0], velocity=[speed, 2.0])
        s.add_constraint(gm.PointOnCurve(
            "rod", b, lambda t, u: u * np.array([np.cos(2 * t), np.sin(2 * t)]), u=1.0, ud=speed,
            nonideal=gm.CoulombFriction(0.3)))  # fmt: skip
        push = 2 * 2.0 * speed
        slowing = -0.3 * abs(push) * speed
        along = [slowing, push, 4 + slowing]
        assert s.solve().qdd == pytest.approx(along)


def test_a_law_of_the_user_may_ask_for_the_multipliers():
    def law(t, q, qd, multipliers_total):
        return np.array([-0.5 * np.abs(multipliers_total[0]) * np.sign(qd[0]), 0.0])

    s = gm.System(coordinates=["x", "y"], q=[0, 0], qd=[1.0, 0], mass_matrix=2 * np.eye(2),
                  force=[12.0, -16.0])  # fmt: skip
    s.add_constraint(gm.Holonomic("slope", lambda t, q: q[1], nonideal=law))
    motion = s.solve()
    # fri-01-slip-from-rest: N = 16, friction 8
    assert motion.qdd == pytest.approx([2.0, 0.0]) and motion.Q_c == pytest.approx([-8.0, 16.0])
    C = s.assemble()[4]
    assert pytest.approx([-8.0, 0.0]) == C


def test_friction_of_a_batch_is_that_of_its_states():
    s = ring(gm.CoulombFriction(0.2))
    qd = np.outer(np.linspace(0.5, 4, 9), [0.0, 1.0])
    many = s.solve(0.0, s.q, qd)
    for k in range(9):
        assert np.allclose(many.qdd[k], s.solve(0.0, s.q, qd[k]).qdd, rtol=1e-14)
    assert np.array_equal(s.assemble(0.0, s.q, qd).solve().qdd, many.qdd)


def test_at_zero_sliding_speed_the_error_asks_for_contact_laws():
    s = ring(gm.CoulombFriction(0.2), 0.0)
    with pytest.raises(ValueError, match=r"'ring' does not slide: at zero sliding speed"):
        s.solve()
    t = ring(gm.CoulombFriction(0.2))
    with pytest.raises(ValueError, match=r"'ring' does not slide at index \(1,\)"):
        t.solve(qd=[[0.0, 1.0], [0.0, 0.0]])
    assert np.isfinite(ring(gm.ViscousFriction(0.2), 0.0).solve().qdd).all()


def rod_on_a_rough_floor(mu, angle):
    """Painlevé's rod: its tip slides to the left on the floor, the rod leaning back."""
    s = gm.System()
    place = np.array([np.cos(angle), np.sin(angle)])
    rod = s.add_planar_body("rod", mass=1.0, inertia=1 / 3, position=place, angle=angle,
                            velocity=[-1.0, 0.0], angular_velocity=0.0)  # fmt: skip
    s.add_force(gm.UniformGravity([0, -G]))
    s.add_constraint(gm.PointOnPlane("tip", rod.at([-1.0, 0.0]), s.ground([0, 0]), [0, 1],
                                     nonideal=gm.CoulombFriction(mu)))  # fmt: skip
    return s


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.2])
def test_a_rod_that_slides_has_the_normal_force_of_the_textbook(mu):
    angle = 1.0
    s = rod_on_a_rough_floor(mu, angle)
    motion = s.solve()
    # N (1/m + l²/J cos a (cos a - mu sin a)) = g for the tip at -l along the rod, sliding left
    c, sn = np.cos(angle), np.sin(angle)
    expected = G / (1 + 3 * c * (c - mu * sn))
    assert motion.reaction("tip").forces["rod"][1] == pytest.approx(expected)
    assert motion.K @ motion.K > 0


def test_friction_that_has_no_answer_is_an_error_and_no_number():
    # beyond Painlevé's limit the coefficient of N is negative: fixed points fly apart
    with pytest.raises(gm.GaussmechError, match=r"the coupling is too strong, .* \(Painlevé\)"):
        rod_on_a_rough_floor(6.0, 1.0).solve()


def test_bad_coefficients_and_laws_without_a_sliding_point_get_a_sentence():
    with pytest.raises(ValueError, match="mu of CoulombFriction is -1"):
        gm.CoulombFriction(-1)
    with pytest.raises(ValueError, match="c of ViscousFriction is -1"):
        gm.ViscousFriction(-1)
    s = gm.System(coordinates=["x", "y"], q=[0, 0], qd=[1, 0], mass_matrix=np.eye(2))
    s.add_constraint(gm.Holonomic("y", lambda t, q: q[1], nonideal=gm.CoulombFriction(0.3)))
    with pytest.raises(ValueError, match="constraint 'y' has no points that slide"):
        s.solve()
    assert repr(gm.CoulombFriction(0.3)) == "CoulombFriction(0.3)"
