"""How results print, pickle and refuse to be truth values."""

import copy
import pickle

import numpy as np
import pytest

import gaussmech as gm

FIELDS = [
    "qdd", "Q_c", "Q_ideal", "K", "multipliers", "multipliers_total", "multipliers_unique",
    "vanished", "zwang", "rank", "nullity", "residual", "status",
]  # fmt: skip
ONE = gm.solve(np.eye(2), [3, -10], [[0, 1]], [0])
NONIDEAL = gm.solve(np.eye(2), [3, -10], [[0, 1]], [0], [-2, 0])


def test_a_motion_prints_like_a_table_in_a_book():
    assert repr(ONE) == (
        "Motion\n"
        "  qdd         [3. 0.]     acceleration\n"
        "  Q_c         [ 0. 10.]   constraint force   (= Q_ideal, no non-ideal part)\n"
        "  multipliers [10.]       Q_ideal = A.T @ multipliers\n"
        "  zwang       100         Gauss's constraint\n"
        "  rank        1 of 1 row"
    )


def test_a_non_ideal_part_is_printed_with_both_kinds_of_multipliers():
    text = repr(NONIDEAL)
    assert "  Q_c               [-2. 10.]   constraint force\n" in text
    assert "  K                 [-2.  0.]   its non-ideal part\n" in text
    assert "Q_c - C = A.T @ multipliers_total" in text


def test_names_stand_above_their_columns():
    names = {"rows": ["table"], "coordinates": ["x", "height"]}
    text = repr(gm.solve(np.eye(2), [3, -10], [[0, 1]], [0], names=names))
    lines = text.splitlines()
    assert lines[1] == "  coordinate  x  height"
    assert lines[2] == "  qdd         3       0   acceleration"
    assert lines[4] == "  constraint  table"


def test_what_is_not_unique_is_marked():
    text = repr(gm.solve(np.eye(2), [3, -10], [[0, 1], [0, 1], [1, 0]], [0, 0, 0]))
    assert "rows 0 and 1 not unique, minimum norm" in text
    assert "2 of 3 rows" in text


def test_remarks_and_missing_answers_are_printed_in_words():
    projected = gm.solve(np.eye(1), [0], [[1], [1]], [0, 1], inconsistent="project")
    assert "PROJECTED" in repr(projected)
    assert "residual" in repr(projected)
    failed = gm.solve(np.eye(1), [np.nan], [[1]], [0], errors="status")
    assert "NONFINITE" in repr(failed)
    assert "no answer: an input is nan or inf" in repr(failed)
    assert "unknown" in repr(failed)


def test_only_computed_fields_are_printed_and_returned():
    part = gm.solve(np.eye(2), [3, -10], [[0, 1]], [0], outputs=("qdd",))
    assert repr(part) == "Motion\n  qdd [3. 0.]  acceleration"
    assert list(part.to_dict()) == ["qdd", "status"]


def test_a_batch_prints_as_a_summary_with_its_faults():
    b = np.array([[0.0], [np.nan], [0.0]])
    text = repr(gm.solve(np.eye(2), [3, -10], [[0, 1]], b, errors="status"))
    assert text.startswith("Motion of 3 systems, batch shape (3,)")
    assert "2 OK" in text
    assert "1 NONFINITE" in text
    assert "first at index (1,)" in text


def test_long_vectors_are_abbreviated():
    n = 300
    text = repr(gm.solve(np.eye(n), np.arange(n), np.ones((1, n)), [0]))
    assert "..." in text
    assert max(map(len, text.splitlines())) < 200


def test_html_is_a_table_with_escaped_names():
    names = {"rows": ["<b>rod</b>"], "coordinates": ["x", "y"]}
    html = gm.solve(np.eye(2), [3, -10], [[0, 1]], [0], names=names)._repr_html_()
    assert html.startswith("<table>")
    assert "&lt;b&gt;rod&lt;/b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == html.count("</tr>") == len(repr(ONE).splitlines()) + 1
    assert "qdd" in gm.solve(np.eye(2), np.ones((4, 2)), [[0, 1]], [0])._repr_html_()


def test_to_dict_has_the_fields_in_their_order():
    assert list(ONE.to_dict()) == FIELDS
    assert ONE.to_dict()["status"] is gm.Status.OK


@pytest.mark.parametrize(
    "motion", [ONE, NONIDEAL, gm.solve(np.eye(2), np.ones((4, 2)), [[0, 1]], [0])]
)
def test_a_motion_survives_pickling_and_copying(motion):
    for again in (pickle.loads(pickle.dumps(motion)), copy.deepcopy(motion)):
        for name in FIELDS:
            assert np.array_equal(getattr(again, name), getattr(motion, name), equal_nan=True)
        assert repr(again) == repr(motion)


def test_a_motion_is_no_truth_value():
    with pytest.raises(ValueError, match=r"ambiguous: test motion\.status"):
        bool(ONE)


def test_the_numbers_of_statuses_never_change():
    assert {s.name: int(s) for s in gm.Status} == {
        "OK": 0,
        "PROJECTED": 1,
        "MINIMUM_NORM": 2,
        "PROJECTED_MINIMUM_NORM": 3,
        "NONFINITE": -1,
        "ASYMMETRIC": -2,
        "INDEFINITE": -3,
        "INCONSISTENT": -4,
        "INDETERMINATE_MANY": -5,
        "INDETERMINATE_NONE": -6,
        "NO_CONVERGENCE": -7,
    }
