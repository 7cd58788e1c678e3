"""The picture of Gauss's principle: what is drawn is true, and the live page follows the mouse."""

import html
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gaussmech as gm

PLANE = ([[1, 0.3], [0.3, 2]], [3, -8], [[1, 1]], [0])
NONIDEAL = (*PLANE, [1, -1.5])
SINGULAR = ([[1, 0], [0, 0]], [0, 5], [[1, -1]], [0])  # Q is not in the range of M: no Zwang
rng = np.random.default_rng(3)
HALF = rng.standard_normal((4, 4))
SPACE = (HALF @ HALF.T + np.eye(4), 5 * rng.standard_normal(4), rng.standard_normal((2, 4)), [1, 2])
FREE = (np.eye(2), [3, 5], np.zeros((0, 2)), [])
FIXED = (np.eye(2), [3, 5], np.eye(2), [1, 1])
MASSLESS = (np.diag([0.0, 2, 3]), [1, 2, 3], [[1, -1, 0]], [0])
CASES = {
    "plane": (PLANE, None),
    "non-ideal": (NONIDEAL, None),
    "singular": (SINGULAR, None),
    "space": (SPACE, None),
    "section": (SPACE, (0, 3)),
    "directions": (SPACE, [[1, 0, 0, 1], [0, 2, 1, 0]]),
    "free": (FREE, None),
    "fixed": (FIXED, None),
    "massless": (MASSLESS, None),
    "one-free": ((*SPACE[:2], [[1, 0, 0, 0]], [1]), None),
    "at-rest": ((np.eye(2), [0, 0], [[0, 1]], [0]), None),
}
each_case = pytest.mark.parametrize("case", CASES)
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def page(problem, plane=None, folder=None, **options):
    path = folder / "zwang.html"
    gm.plot.zwang(*problem, plane=plane, path=path, **options)
    return path.read_text(encoding="utf-8")


def data(text):
    return json.loads(re.search(r"const data = (.*);\n", text).group(1))


@each_case
def test_the_numbers_of_the_page_are_those_of_the_kernel(case, tmp_path):
    problem, plane = CASES[case]
    found = data(page(problem, plane, tmp_path))
    M, Q, A = (np.asarray(x, float) for x in problem[:3])
    motion = gm.solve(*problem)
    H, slope = np.array(found["H"]), np.array(found["slope"])
    # the directions are not on the page: recover what they do from numbers of the kernel
    zwang = gm.zwang if found["letter"] == "Z" else gm.gauss_function
    assert found["value"] == pytest.approx(zwang(M, Q, motion.qdd), rel=1e-12, abs=1e-12)
    assert found["letter"] == ("Γ" if case in ("singular", "massless") else "Z")
    P = directions(case, problem, plane, motion)
    if P is not None:
        for s in np.array([[0.3, -0.2], [1.0, 2.0], [-3.0, 0.1]]):
            y = motion.qdd + s @ P
            here = found["value"] + 2 * slope @ s + s @ H @ s
            assert here == pytest.approx(zwang(M, Q, y), rel=1e-10, abs=1e-10)
            assert np.allclose(np.array(found["rows"]).reshape(-1, 2) @ s, A @ y - A @ motion.qdd)
    if found["line"] is not None:
        assert np.max(np.abs(np.array(found["rows"]) @ found["line"])) <= 1e-12 * np.abs(A).max()


def directions(case, problem, plane, motion):
    n = len(problem[1])
    if case == "directions":
        return np.array(plane, float)
    if plane is not None:
        return np.eye(n)[list(plane)]
    return np.eye(2) if n == 2 else None


def test_the_natural_plane_is_orthonormal_in_the_metric_of_the_mass_and_shows_the_touch(tmp_path):
    found = data(page(SPACE, None, tmp_path))
    assert np.allclose(found["H"], np.eye(2), atol=1e-12)
    # the constraint is the horizontal line through q̈, the free acceleration straight below or above
    assert abs(found["line"][1]) <= 1e-12 and abs(found["slope"][0]) <= 1e-11
    assert found["free"] is True
    least = np.array(found["least"])
    assert np.sum(least**2) == pytest.approx(found["value"], rel=1e-12)


@each_case
def test_the_touching_curve_touches_and_all_curves_have_their_value(case, tmp_path):
    found = data(page(*CASES[case], tmp_path))
    H, slope = np.array(found["H"]), np.array(found["slope"])

    def Z(s):
        return found["value"] + 2 * s @ slope + (s @ H * s).sum(axis=-1)

    for curve in found["curves"]:
        for part in curve["points"]:
            values = Z(np.array(part))
            spread = np.ptp(Z(np.array(found["half"]) * [[-1, -1], [1, 1], [1, -1], [-1, 1]]))
            # interpolated between points of a grid
            assert np.ptp(values) <= 1e-2 * max(spread, np.abs(values).max())
    touching = [c for c in found["curves"] if c["touching"]]
    if case in ("free", "at-rest"):
        assert not touching
    else:
        (curve,) = touching
        near = min(np.min(np.hypot(*(np.array(p) / found["half"]).T)) for p in curve["points"])
        assert near <= 0.02  # it passes through q̈
    if found["line"] is not None and case not in ("non-ideal", "at-rest", "section", "directions"):
        along = np.array(found["line"])
        assert abs(slope @ along) <= 1e-9 * max(np.linalg.norm(slope), 1)  # and touches there


@each_case
def test_the_static_picture_shows_its_parts(case, tmp_path):
    problem, plane = CASES[case]
    figure = gm.plot.zwang(*problem, plane=plane, path=tmp_path / "zwang.png")
    assert (tmp_path / "zwang.png").stat().st_size > 10_000
    (axes,) = figure.axes
    legend = " ".join(t.get_text() for t in axes.get_legend().get_texts())
    assert "A \\ddot q = b" in legend
    low, high = axes.get_xlim()
    assert low < high and np.isfinite([low, high]).all()
    if case not in ("free", "at-rest"):
        assert "$Q_c$ = (" in legend
    assert ("without the non-ideal part" in legend) == (case == "non-ideal")


def test_titles_say_what_is_to_be_seen():
    def title(problem, plane=None):
        return gm.plot.zwang(*problem, plane=plane).get_suptitle()

    assert title(PLANE).endswith("an ellipse of equal Zwang touches the constraint")
    assert "non-ideal" in title(NONIDEAL)
    assert "admissible, the motion has the least Zwang" in title(FREE)
    assert "no other acceleration in this plane is admissible" in title(FIXED)


def test_axes_carry_the_names_of_coordinates():
    names = {"coordinates": ["x", "y", "u", "v"]}
    figure = gm.plot.zwang(*SPACE, plane=("u", "x"), names=names)
    (axes,) = figure.axes
    assert axes.get_xlabel() == r"$\ddot q$ of u"
    assert axes.get_ylabel() == r"$\ddot q$ of x"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plane": (0, 4)}, r"plane has the coordinate 4; expected 0 to 3"),
        ({"plane": (0, "x")}, r"plane has the coordinate 'x'; expected 0 to 3"),
        ({"plane": (1, 1)}, r"plane has coordinate 1 twice"),
        ({"plane": (True, 1)}, r"plane has the coordinate True"),
        ({"plane": [[1, 0, 0, 0], [2, 0, 0, 0]]}, r"two independent directions, .* shape \(2, 4\)"),
        ({"plane": 3}, r"plane is 3; expected two coordinates"),
        ({"plane": "xy"}, r"plane has the coordinate 'x'|plane is 'xy'"),
        ({"plane": [[1, 0], [0, 1]]}, r"expected two coordinates"),
    ],
)
def test_a_plane_that_is_none_gets_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        gm.plot.zwang(*SPACE, **options)


def test_what_cannot_be_drawn_gets_a_sentence():
    with pytest.raises(ValueError, match=r"the batch shape is \(3,\); expected one system"):
        gm.plot.zwang(np.eye(2), np.ones((3, 2)), [[1, 1]], [0])
    with pytest.raises(ValueError, match="1 coordinate; expected two or more"):
        gm.plot.zwang([[1]], [1], [[1]], [0])
    with pytest.raises(gm.InconsistentConstraintsError):
        gm.plot.zwang(np.eye(2), [1, 1], [[1, 1], [1, 1]], [0, 1])


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "import gaussmech as gm\n"
        "try:\n    gm.plot.zwang([[1, 0], [0, 1]], [1, 1], [[1, 1]], [0])\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'gaussmech[plot]'" in done.stdout


@each_case
def test_the_page_is_one_file_that_loads_nothing(case, tmp_path):
    text = page(*CASES[case], tmp_path)
    assert not re.search(r"(src|href)\s*=|@import|url\(|fetch\(|XMLHttp", text)
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert "NaN" not in text and "Infinity" not in text and "/*DATA*/" not in text


@pytest.mark.parametrize("name", ["x_1^2", "cost $", r"$\frac{", "100 %", "q̈", ""])
def test_any_name_can_label_an_axis(name, tmp_path):
    names = {"coordinates": [name, "y"]}
    gm.plot.zwang(*PLANE, names=names, path=tmp_path / "zwang.png")
    assert data(page(PLANE, None, tmp_path, names=names))["labels"][0] == f"q̈ of {name}"


def test_a_name_cannot_break_out_of_the_page(tmp_path):
    bad = "</script><script>document.title='broken'</script>"
    names = {"coordinates": [bad, "y"]}
    text = page(PLANE, None, tmp_path, names=names)
    assert text.count("<script") == 1 and text.count("</script") == 1


def test_a_notebook_shows_the_page():
    shown = gm.plot.zwang(*PLANE)._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    inner = html.unescape(re.search(r'srcdoc="([^"]*)"', shown).group(1))
    assert inner.startswith("<!DOCTYPE html>") and data(inner)["letter"] == "Z"


# ------------------------------------------------------------------ in a browser

ACT = """
<script>
window.onerror = m => { document.title = "error: " + m; };
const said = [];
const read = () => said.push(["Zy", "Zq", "gap", "work", "verdict"].map(
  id => document.getElementById(id).textContent));
const fire = (type, p) => svg.dispatchEvent(new PointerEvent(type,
  {clientX: p[0], clientY: p[1], pointerId: 1, bubbles: true}));
const screen = s => { const r = svg.getBoundingClientRect(), q = px(s);
  return [r.left + q[0] * r.width / W, r.top + q[1] * r.height / Hpx]; };
read();
STEPS
const out = document.createElement("pre"); out.id = "said"; out.textContent = JSON.stringify(said);
document.body.appendChild(out);
</script></body>"""
DRAG = """
fire("pointerdown", screen([0.1, 0.1])); fire("pointermove", screen(TO)); read();
fire("pointerup", screen(TO)); fire("pointermove", screen([0, 0])); read();
"""


def browse(text, steps, folder):
    """What the page says at the start and after each `read()` of the steps."""
    path = folder / "acted.html"
    path.write_text(text.replace("</body>", ACT.replace("STEPS", steps)), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               f"--user-data-dir={folder / 'profile'}", path.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "error:" not in re.search(r"<title>(.*?)</title>", done.stdout).group(1), done.stdout
    return json.loads(html.unescape(re.search(r'<pre id="said">(.*?)</pre>', done.stdout).group(1)))


needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium to open the page with")


@needs_browser
def test_a_dragged_competitor_shows_its_zwang_and_keeps_to_the_constraint(tmp_path):
    M, Q = np.array(PLANE[0]), np.array(PLANE[1], float)
    qdd = gm.acceleration(*PLANE)
    text = page(PLANE, None, tmp_path)
    start, moved, released = browse(text, DRAG.replace("TO", "[0.21, -0.13]"), tmp_path)
    # the point of the line next to (0.21, -0.13) in the metric of M
    t = np.array([1.0, -1.0])
    y = qdd + t * (t @ M @ [0.21, -0.13]) / (t @ M @ t)
    gap = (y - qdd) @ M @ (y - qdd)
    assert float(moved[0]) == pytest.approx(gm.zwang(M, Q, y), rel=1e-5)
    assert float(moved[1]) == pytest.approx(gm.zwang(M, Q, qdd), rel=1e-5)
    assert float(moved[2]) == pytest.approx(gap, rel=1e-4)
    assert moved[4].startswith("y satisfies the constraints: Z(y) = Z(q̈) + ‖y − q̈‖² = ")
    assert float(moved[4].split("= ")[-1]) == pytest.approx(float(moved[0]), rel=1e-5)
    assert released == moved and start != moved


@needs_browser
def test_a_competitor_off_the_constraint_is_said_not_to_compete(tmp_path):
    M, Q = np.array(PLANE[0]), np.array(PLANE[1], float)
    qdd = gm.acceleration(*PLANE)
    off = "keep.checked = false;" + DRAG.replace("TO", "[0.05, 0.07]")
    _, moved, _ = browse(page(PLANE, None, tmp_path), off, tmp_path)
    y = qdd + np.array([0.05, 0.07])
    assert float(moved[0]) == pytest.approx(gm.zwang(M, Q, y), rel=1e-5)
    assert moved[4] == "y violates the constraints: A y − b is up to 0.12; it does not compete"


@needs_browser
def test_with_a_non_ideal_part_its_work_closes_the_balance(tmp_path):
    _, moved, _ = browse(
        page(NONIDEAL, None, tmp_path), DRAG.replace("TO", "[0.5, -0.5]"), tmp_path
    )
    Zy, Zq, gap, work = map(float, moved[:4])
    assert work == pytest.approx(2 * 0.5 * (1 + 1.5), rel=1e-5)
    assert Zy == pytest.approx(Zq + gap + work, rel=1e-5)


@needs_browser
@each_case
def test_the_page_of_every_kind_opens_and_moves_by_keys(case, tmp_path):
    steps = """
    for (const key of ["ArrowRight", "ArrowUp", "ArrowUp"])
      ring.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    read();
    """
    start, moved = browse(page(*CASES[case], tmp_path), steps, tmp_path)
    assert start[1] == moved[1]
    assert start[2] != moved[2]
