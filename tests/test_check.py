"""cross_check is a verdict: it fails when something is wrong, and prints what it found."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gaussmech as gm
import random_problems
from gaussmech import check as module
from gaussmech import formulations

PROBLEM = ([[2, 1, 0], [1, 3, 0], [0, 0, 4]], [1, -2, 3], [[1, 1, 0], [0, 1, -1]], [2, 1])
TABLE = ([[1, 0], [0, 1]], [3, -10], [[0, 1], [0, 1]], [0, 0])


def spoiled(monkeypatch, name, change):
    """Let one route answer `change(qdd, Q_c, multipliers)`."""
    routes = [
        replace(entry, formula=lambda *given, f=entry.formula: change(*f(*given)))
        if entry.name == name
        else entry
        for entry in formulations.ROUTES
    ]
    monkeypatch.setattr(module, "ROUTES", routes)


@pytest.mark.parametrize("name", formulations.__all__)
@pytest.mark.parametrize("field", [0, 1, 2], ids=["qdd", "Q_c", "multipliers"])
def test_a_wrong_answer_of_any_route_fails_the_verdict(name, field, monkeypatch):
    def change(*answer):
        return tuple(x * (1 + 1e-9) if j == field else x for j, x in enumerate(answer))

    spoiled(monkeypatch, name, change)
    check = gm.cross_check(*PROBLEM)
    assert not check.ok
    with pytest.raises(AssertionError):
        assert check
    assert [row.name for row in check if row.ok is False] == [name]
    assert "DISAGREES: differs in" in repr(check)
    assert "background" in check._repr_html_()


def test_a_wrong_kernel_is_found_by_every_route(monkeypatch):
    def wrong(M, Q, A, b, C=None, **options):
        return gm.solve(M, np.multiply(Q, 1.0001), A, b, C, **options)

    monkeypatch.setattr(module, "solve", wrong)
    check = gm.cross_check(*PROBLEM)
    assert not check and all(row.ok is False for row in check)


def test_a_route_that_drops_a_term_is_no_loss_of_digits(monkeypatch):
    # at a mass ratio of 1e8 routes are forgiven lost digits, which a dropped term is not
    def formula(M, Q, A, b, C, rank):
        return formulations.ROUTES[4].formula(M, Q, A, 0 * b, C, rank)

    routes = [replace(formulations.ROUTES[4], formula=formula)]
    monkeypatch.setattr(module, "ROUTES", routes)
    assert not gm.cross_check(np.diag([1, 1e-8, 1]), *PROBLEM[1:])


def test_nothing_to_compare_with_is_no_confirmation(monkeypatch):
    monkeypatch.setattr(module, "ROUTES", [formulations.ROUTES[2]])
    check = gm.cross_check(*TABLE)
    assert not check.ok and "0 of 0" in repr(check)


def test_the_table_shows_titles_answers_distances_times_and_sentences():
    text = repr(gm.cross_check(*TABLE))
    assert text.startswith(
        "cross_check: 5 of 5 formulations that apply agree with the kernel\n  formulation"
    )
    for title in (
        "Udwadia–Kalaba (M^1/2 and the pseudo-inverse)",
        "Udwadia–Phohomsiri (augmented mass matrix)",
        "Lagrange's first kind (multipliers, KKT matrix)",
        "Gauss (equality-constrained least squares)",
        "Jourdain (projection on the virtual velocities; Maggi, Kane)",
        "Elimination (independent coordinates)",
    ):
        assert title in text
    assert "does not apply: needs independent rows: rank 1 of 2 rows" in text
    assert re.search(r"kernel \(gm.solve\) +\[3 0\] +\[0 10\] +[\d.]+ (ns|µs|ms)", text)
    assert text.endswith("1 is what one ulp in every entry of the data can change")


def test_the_html_has_the_same_words_and_escapes_them():
    html = gm.cross_check(*TABLE)._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr") == 8
    assert "Lagrange&#x27;s first kind" in html
    assert "<script" not in html


def test_rows_are_found_by_name_and_a_wrong_name_lists_them():
    check = gm.cross_check(*TABLE)
    assert check["gauss"].ok is True and check["lagrange_first_kind"].ok is None
    assert np.allclose(check["gauss"].qdd, [3, 0], atol=1e-14)
    with pytest.raises(KeyError, match="no formulation has the name 'Gauss'; expected one of 'ud"):
        check["Gauss"]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(check["gauss"])
    assert repr(check["gauss"]) == "Gauss (equality-constrained least squares): agrees"


def test_lost_digits_are_counted_and_no_digits_are_no_answer():
    # the printed formula squares the mass ratio
    text = repr(gm.cross_check(np.diag([1, 1e-9, 1]), *PROBLEM[1:])["udwadia_kalaba"])
    assert re.search(r"agrees: it keeps \d+ digits here$", text)
    nearly = ([[1, 0], [0, 1]], [1, 2], [[1, 0], [1, 1e-10]], [0, 0])
    assert gm.cross_check(*nearly)["lagrange_first_kind"].remark.startswith(
        "needs a better KKT matrix: its condition is "
    )


def test_a_batch_is_judged_by_its_worst_system():
    M = np.array([np.eye(2), np.diag([1.0, 0.0])])
    check = gm.cross_check(M, [1, 2], [[1, 1]], [[0], [1]])
    assert check.ok and check.motion.qdd.shape == (2, 2)
    row = check["udwadia_kalaba"]
    assert row.ok is True and np.isnan(row.qdd[1]).all() and np.isfinite(row.qdd[0]).all()
    assert row.remark.endswith("(1 of 2 systems, first at index (1,))")
    assert "in all of 2 systems" in repr(check)


def test_a_wrong_system_of_a_batch_is_named(monkeypatch):
    def formula(M, Q, A, b, C, rank):
        factor = 2 if Q[0] < 0 else 1
        return formulations.ROUTES[4].formula(M, factor * Q, A, b, C, rank)

    monkeypatch.setattr(module, "ROUTES", [replace(formulations.ROUTES[4], formula=formula)])
    check = gm.cross_check(np.eye(2), [[1, 2], [-5, 2], [3, 4]], [[1, 1]], [0])
    assert not check
    assert "differs in 1 systems, first at index (1,)" in check["jourdain"].remark


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_an_empty_batch_has_nothing_to_disagree_about(shape):
    check = gm.cross_check(np.zeros((*shape, 2, 2)), [1, 2], [[1, 1]], [0])
    assert check.ok and check["gauss"].qdd.shape == (*shape, 2)
    assert "0 of 0" in repr(check) or "6 of 6" in repr(check)


def test_problems_without_an_answer_raise_as_solve_does():
    with pytest.raises(gm.InconsistentConstraintsError, match="'table' and 'shelf'"):
        gm.cross_check(*TABLE[:3], [0, 1], names={"rows": ["table", "shelf"]})
    with pytest.raises(gm.IndeterminateMotionError):
        gm.cross_check([[0]], [0], [[0]], [0])
    with pytest.raises(ValueError, match="Q has shape"):
        gm.cross_check([[1]], [[0, 1]], [[0]], [0])


def test_units_do_not_change_the_verdict():
    for seed in range(20):
        M, Q, A, b, C, _ = random_problems.problem("non-ideal", seed)
        d = 10.0 ** np.random.default_rng(seed).integers(-4, 5, len(Q))
        scaled = gm.cross_check(M * np.outer(d, d), Q * d, A * d, b, C * d)
        assert scaled.ok, scaled


# ------------------------------------------------------------------ public bug reports

CASES = json.loads((Path(__file__).parent / "data" / "cases.json").read_text(encoding="utf-8"))
SOLVABLE = [
    case
    for case in CASES
    if case["input"]["form"] in ("kernel", "model") and "error" not in case["expected"]
]


def numbers(x):
    return np.array([numbers(v) for v in x]) if isinstance(x, list) else float(x)


@pytest.mark.parametrize("case", SOLVABLE, ids=lambda case: case["id"])
def test_cases_out_of_bug_reports_cross_check_and_pass_the_report(case):
    given = case["input"]
    M, Q, A, b = (numbers(given[k]) for k in "MQAb")
    A = A.reshape(len(b), len(Q))
    C = numbers(given["C"]) if "C" in given else None
    assert gm.cross_check(M, Q, A, b, C)
    motion = gm.solve(M, Q, A, b, C)
    assert gm.principles.report(M, Q, A, b, C, qdd=motion.qdd)
    if np.abs(motion.qdd).max() > 0:
        assert not gm.principles.report(M, Q, A, b, C, qdd=-motion.qdd)
