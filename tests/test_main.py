"""The command line, run as a user runs it."""

import json
import subprocess
import sys

import numpy as np
import pytest

import gaussmech as gm

PROBLEM = {"M": [[2, 0], [0, 3]], "Q": [1, 0], "A": [[1, 1]], "b": [0]}


def run(*args, cwd=None):
    command = [sys.executable, "-m", "gaussmech", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd)


def test_the_worked_example_agrees_with_the_closed_form_and_the_printed_formula():
    done = run()
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    kernel = next(line.split()[1] for line in lines if line.startswith("  kernel"))
    closed = next(line.split()[2] for line in lines if line.startswith("  closed form"))
    assert kernel == closed == "-8.164117939416"
    assert float(lines[-1].split()[-2]) < 1e-13


def test_a_json_file_is_solved_and_printed_with_its_names(tmp_path):
    file = tmp_path / "p.json"
    names = {"rows": ["weld"], "coordinates": ["left", "right"]}
    file.write_text(json.dumps({**PROBLEM, "C": [0, -1], "names": names}))
    done = run("solve", file)
    assert done.returncode == 0
    expected = gm.solve(*PROBLEM.values(), [0, -1], names=names)
    assert done.stdout == repr(expected) + "\n"


@pytest.mark.parametrize("ending", [".npz", ".json"])
def test_results_are_written_with_all_their_digits(tmp_path, ending):
    np.savez(tmp_path / "p.npz", **PROBLEM)
    out = tmp_path / f"out{ending}"
    assert run("solve", tmp_path / "p.npz", "--output", out).returncode == 0
    written = np.load(out) if ending == ".npz" else json.loads(out.read_text())
    motion = gm.solve(*PROBLEM.values())
    assert list(written) == list(motion.to_dict())
    assert np.array_equal(written["qdd"], motion.qdd)
    assert int(written["status"]) == 0


def test_an_undefined_zwang_is_null_in_json(tmp_path):
    (tmp_path / "p.json").write_text(
        json.dumps({"M": [[2, 0], [0, 0]], "Q": [0, 3], "A": [[1, -1]], "b": [0]})
    )
    assert run("solve", "p.json", "--output", "o.json", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "o.json").read_text())["zwang"] is None


def test_a_problem_without_rows_is_solved(tmp_path):
    (tmp_path / "p.json").write_text(json.dumps({**PROBLEM, "A": [], "b": []}))
    assert "rank        0 of 0 rows" in run("solve", "p.json", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("p.json", "{", "not JSON"),
        ("p.json", "[1]", "holds a list; expected an object with M, Q, A, b"),
        ("p.json", '{"M": [[1]]}', "Q, A, b missing; it has M"),
        ("p.json", json.dumps({**PROBLEM, "D": 1}), "'D' is not known"),
        ("p.json", json.dumps({**PROBLEM, "M": [[1], [1, 2]]}), "M is not a rectangular array"),
        ("p.json", json.dumps({**PROBLEM, "Q": ["a", 1]}), "Q is not a rectangular array"),
        ("p.json", json.dumps({**PROBLEM, "Q": [1, 2, 3]}), "Q has shape (3,); expected (..., 2)"),
        ("p.json", json.dumps({**PROBLEM, "Q": None}), "Q is None"),
        ("p.json", json.dumps({**PROBLEM, "Q": [1, float("nan")]}), "Q[1] is nan"),
        ("p.json", json.dumps({**PROBLEM, "names": ["x"]}), "names is a list"),
        ("p.npz", "not an archive", "cannot be read"),
        ("p.npz", "", "cannot be read"),
        ("p.txt", "1 2", "expected a file that ends in .npz or .json"),
        ("p.json", b"\xff\xfe\x00", "not a text file in UTF-8"),
    ],
)
def test_a_bad_file_gets_one_clear_sentence_and_exit_code_2(tmp_path, name, content, text):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = run("solve", file)
    assert done.returncode == 2
    assert text in done.stderr
    assert done.stderr.startswith(f"gaussmech: {file}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_files_that_cannot_be_opened_or_written_are_named(tmp_path):
    assert "no such file" in run("solve", tmp_path / "none.json").stderr
    (tmp_path / "p.json").write_text(json.dumps(PROBLEM))
    done = run("solve", tmp_path / "p.json", "--output", tmp_path / "no" / "o.json")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    done = run("solve", tmp_path / "p.json", "--output", tmp_path / "o.txt")
    assert done.returncode == 2
    assert "expected a name that ends in .npz or .json" in done.stderr
    folder = tmp_path / "folder.json"
    folder.mkdir()
    assert run("solve", folder).returncode == 2


def test_a_pickle_in_an_archive_is_not_loaded(tmp_path):
    np.savez(tmp_path / "p.npz", M=np.array([{}], dtype=object), Q=[1], A=[[1]], b=[0])
    done = run("solve", tmp_path / "p.npz")
    assert done.returncode == 2
    assert "cannot be read" in done.stderr


def test_a_problem_without_an_answer_exits_with_1_and_options_allow_compromises(tmp_path):
    file = tmp_path / "p.json"
    file.write_text(json.dumps({"M": [[1]], "Q": [0], "A": [[1], [1]], "b": [0, 1]}))
    done = run("solve", file)
    assert done.returncode == 1
    assert "rows 0 and 1 ask for different accelerations" in done.stderr
    assert run("solve", file, "--inconsistent", "project").returncode == 0
