"""Worked examples of the principles with their closed forms, each with its source named.

All in the project's signs: M q̈ = Q + Q_c, Z without ½.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import gaussmech as gm
from gaussmech import formulations, principles

REFERENCE = Path(__file__).parents[1] / "data" / "reference"
ROUTES = [getattr(formulations, name) for name in formulations.__all__]
EPS = np.finfo(float).eps
# closed forms of order one to a hundred from well-conditioned 2 to 4 coordinates
CLOSED = 200 * EPS


def near(x, expected):
    x, expected = np.asarray(x, float), np.asarray(expected, float)
    assert np.max(np.abs(x - expected)) <= CLOSED * max(1.0, np.max(np.abs(expected)))


# ----------------------------------------------------------------------------------------
# Two masses on a straight massless rod: d'Alembert; Jakob Bernoulli (1703), two_mass_pendulum.json


def two_mass_pendulum(phi, rate):
    """M, Q, A, b in Cartesian coordinates, and the parameters."""
    p = json.loads((REFERENCE / "two_mass_pendulum.json").read_text(encoding="utf-8"))["parameters"]
    m1, r1, m2, r2, g = (p[k] for k in ("m1", "r1", "m2", "r2", "g"))
    s, c = np.sin(phi), np.cos(phi)
    x1, y1, x2, y2 = r1 * s, -r1 * c, r2 * s, -r2 * c
    M = np.diag([m1, m1, m2, m2])
    Q = np.array([0, -m1 * g, 0, -m2 * g])
    # both lengths, and the masses stay on one line: x1 y2 - y1 x2 = 0
    A = np.array([[x1, y1, 0, 0], [0, 0, x2, y2], [y2, -x2, -y1, x1]])
    b = np.array([-((r1 * rate) ** 2), -((r2 * rate) ** 2), 0])
    return (M, Q, A, b), (m1, r1, m2, r2, g)


@pytest.mark.parametrize(("phi", "rate"), [(1.0, 0.0), (0.4, 2.1), (-2.5, -0.7)])
def test_the_two_mass_pendulum_has_its_equation_of_motion_and_its_zwang(phi, rate):
    problem, (m1, r1, m2, r2, g) = two_mass_pendulum(phi, rate)
    # (m1 r1² + m2 r2²) φ'' + (m1 r1 + m2 r2) g sin φ = 0
    acceleration = -(m1 * r1 + m2 * r2) * g * np.sin(phi) / (m1 * r1**2 + m2 * r2**2)
    along, inward = np.array([np.cos(phi), np.sin(phi)]), np.array([-np.sin(phi), np.cos(phi)])
    expected = [r * (acceleration * along + rate**2 * inward) for r in (r1, r2)]
    # what each mass misses of free fall, along its circle and along the rod
    zwang = sum(
        m * ((r * acceleration + g * np.sin(phi)) ** 2 + (r * rate**2 + g * np.cos(phi)) ** 2)
        for m, r in ((m1, r1), (m2, r2))
    )
    motion = gm.solve(*problem)
    near(motion.qdd, np.concatenate(expected))
    near(motion.zwang, zwang)
    near(gm.zwang(problem[0], problem[1], motion.qdd), zwang)
    near(gm.zwang(problem[0], problem[1], motion.qdd, half=True), zwang / 2)
    for route in ROUTES:
        near(route(*problem)[0], np.concatenate(expected))
    # the parts of Q_c across the rod have opposite moments: Lagrange's form of d'Alembert
    across = [motion.Q_c[:2] @ along, motion.Q_c[2:] @ along]
    near(r1 * across[0] + r2 * across[1], 0)
    assert gm.cross_check(*problem) and principles.report(*problem, qdd=motion.qdd)


@pytest.mark.parametrize("rate", [0.0, 1.5])
def test_zwang_of_the_two_mass_pendulum_is_least_at_the_equation_of_motion(rate):
    phi = 0.9
    (M, Q, A, b), (m1, r1, m2, r2, g) = two_mass_pendulum(phi, rate)
    direction = np.array([r1 * np.cos(phi), r1 * np.sin(phi), r2 * np.cos(phi), r2 * np.sin(phi)])
    shift = np.linspace(-3, 3, 7)
    Z = principles.zwang_variation(M, Q, A, b, direction=direction, alpha=shift)
    # δ is a change of φ'' by one: Z grows by (m1 r1² + m2 r2²) α²
    near(Z - Z[3], (m1 * r1**2 + m2 * r2**2) * shift**2)
    assert g > 0


# ----------------------------------------------------------------------------------------
# A particle on the line where two planes meet: N = 3, two constraints


def test_the_force_on_the_line_of_two_planes_lies_in_the_span_of_their_normals():
    mass, weight = 2.0, np.array([1.0, -2.0, -19.62])
    n1, n2 = np.array([1.0, 2, -1]), np.array([0.0, 1, 3])
    along = np.cross(n1, n2)
    problem = (mass * np.eye(3), weight, [n1, n2], [0, 0])
    motion = gm.solve(*problem)
    # closed form: only the part of the force along the line accelerates
    near(motion.qdd, along * (along @ weight) / (along @ along) / mass)
    near(motion.Q_c, along * (along @ weight) / (along @ along) - weight)
    near(np.linalg.det([n1, n2, motion.Q_c]) / np.linalg.norm(motion.Q_c), 0)
    near(sum(principles.reaction(problem[2], motion.multipliers, k) for k in (0, 1)), motion.Q_c)
    N = principles.virtual_displacements(problem[2])
    near(np.abs(N[:, 0] @ along), np.linalg.norm(along))
    near(principles.virtual_work(motion.Q_c, N[:, 0]), 0)


# ----------------------------------------------------------------------------------------
# Hertz, Die Prinzipien der Mechanik (1894): without forces the path is the straightest


@pytest.mark.parametrize("m", [1.0, 1.3])
def test_a_free_particle_on_a_sphere_runs_along_a_great_circle(m):
    f = json.loads((REFERENCE / "geodesic_sphere_hertz_curvature.json").read_text(encoding="utf-8"))
    R, expected = f["parameters"]["R"], f["expected"]
    q, v = np.array(f["initial_conditions"]["q"]), np.array(f["initial_conditions"]["qd"])
    M = m * np.eye(3)
    motion = gm.solve(M, np.zeros(3), [q], [-v @ v])
    curvature = principles.hertz_curvature(M, v, motion.qdd, total_mass=m)
    near(curvature, 1 / R)
    near(curvature, expected["curvature"])
    # K = Z/(2T)², with (2T)² and not 2T below: lengths in the metric of the mass
    squared = principles.hertz_curvature(M, v, motion.qdd, squared=True)
    near(squared, motion.zwang / (m * v @ v) ** 2)
    near(squared, 1 / (m * R**2))
    near(motion.zwang, m * (v @ v) ** 2 / R**2)


@pytest.mark.parametrize("angle", [0.2, 0.8, np.pi / 2])
def test_a_free_particle_on_a_cylinder_runs_along_a_helix(angle):
    # at an angle to the axis: curvature sin²(angle)/R
    R, speed = 0.7, 2.0
    q = np.array([R, 0.0, 0.0])
    v = speed * np.array([0.0, np.sin(angle), np.cos(angle)])
    motion = gm.solve(np.eye(3), np.zeros(3), [[q[0], q[1], 0]], [-(v[0] ** 2 + v[1] ** 2)])
    near(principles.hertz_curvature(np.eye(3), v, motion.qdd), np.sin(angle) ** 2 / R)


def test_no_other_admissible_path_is_as_straight():
    q, v = np.array([2.0, 0, 0]), np.array([0, 1.2, 0.9])
    A, b = [q], [-v @ v]
    free = gm.acceleration(np.eye(3), np.zeros(3), A, b)
    least = principles.hertz_curvature(np.eye(3), v, free)
    for y in principles.competitors(np.eye(3), A, free, count=30):
        across = y - v * (v @ y) / (v @ v)
        if np.linalg.norm(across - free) > 1e-6:
            assert principles.hertz_curvature(np.eye(3), v, y) > least


def test_a_force_along_the_path_does_not_bend_it():
    # the form for changing T: a bead that is driven along a circle of radius 2
    v = np.array([0.0, 3.0])
    motion = gm.solve(np.eye(2), [0.0, 5.0], [[2.0, 0.0]], [-v @ v])
    near(motion.qdd, [-4.5, 5.0])
    near(principles.hertz_curvature(np.eye(2), v, motion.qdd), 0.5)
    # Z is that of the constraint alone: here Z/(2T)² is the curvature too
    near(motion.zwang / (v @ v) ** 2, 0.25)


# ----------------------------------------------------------------------------------------
# Z by the multipliers; rheonomic constraints


def test_zwang_is_the_work_of_the_multipliers_on_what_the_free_motion_misses():
    # Udwadia and Kalaba: Z = λ·(b - A a) = Q_c M⁻¹ Q_c
    problem, _ = two_mass_pendulum(0.3, 1.1)
    M, Q, A, b = problem
    motion = gm.solve(*problem)
    a = gm.free_acceleration(M, Q)
    near(motion.multipliers @ (b - A @ a), motion.zwang)
    near(motion.Q_c @ np.linalg.solve(M, motion.Q_c), motion.zwang)
    near(2 * (principles.gibbs_appell(M, motion.qdd) - Q @ motion.qdd) + a @ M @ a, motion.zwang)


def test_a_moving_constraint_does_work_but_no_virtual_work():
    # a bead on a rod that turns at a given rate: φ = y cos ωt - x sin ωt, at t = 0
    omega, r, rd, m = 2.0, 0.8, 0.3, 1.5
    v = np.array([rd, r * omega])
    A, b = np.array([[0.0, 1.0]]), np.array([2 * omega * rd])
    motion = gm.solve(m * np.eye(2), [0, 0], A, b)
    # r'' = 0 along the rod at this instant in the fixed frame's x, 2 ω r' across
    near(motion.qdd, [0, 2 * omega * rd])
    near(motion.Q_c, [0, 2 * m * omega * rd])
    near(principles.virtual_work(motion.Q_c, principles.virtual_displacements(A)[:, 0]), 0)
    assert principles.virtual_work(motion.Q_c, v) > 1.0
