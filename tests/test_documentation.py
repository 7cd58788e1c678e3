"""Docstring examples run; the README's example prints what the README says it prints."""

import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import re
from pathlib import Path

import pytest

import gaussmech as gm

ROOT = Path(__file__).parents[1]
MODULES = [m.name for m in pkgutil.iter_modules(gm.__path__) if m.name != "_kernel"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(f"gaussmech.{name}")
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", [n for n in gm.__all__ if inspect.isfunction(getattr(gm, n))])
def test_public_functions_document_parameters_returns_errors_and_an_example(name):
    text = inspect.getdoc(getattr(gm, name))
    for section in ("Parameters", "Returns", "Raises", "Examples"):
        assert re.search(rf"^{section}\n-+$", text, re.M), f"{name}: no {section}"
    documented = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", text, re.M)
    named = {p.strip() for line in documented for p in line.split(",")}
    missing = set(inspect.signature(getattr(gm, name)).parameters) - named
    if "As in `solve`, and so are the keywords." in text:
        missing -= set(inspect.signature(gm.solve).parameters)
    assert not missing, f"{name}: {missing}"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def printed_by(code, scope):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, scope)
    return out.getvalue()


def without_rounding(text):
    """Numbers below 1e-13 differ from machine to machine; columns are as wide as they come."""
    return re.sub(r" +", " ", re.sub(r"[\d.]+e-1[3-9]", "0", text))


def test_the_readme_examples_print_what_the_readme_shows():
    example, clash, model, check, derivation = blocks("python")
    printed, error, moved, report = blocks("text")
    scope = {}
    assert printed_by(example, scope) == printed
    with pytest.raises(gm.InconsistentConstraintsError) as caught:
        exec(clash, scope)
    assert f"InconsistentConstraintsError: {caught.value}\n" == error
    assert printed_by(model, scope) == moved
    assert "6 of 6 formulations that apply agree" in printed_by(check, scope)
    assert without_rounding(printed_by(derivation, scope)) == without_rounding(report)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_an_example_runs_is_short_and_asserts_something(path):
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) <= 16, "one line of title and fifteen of code"
    assert "assert " in lines[-1]
    printed_by(text, {})


def test_the_ci_script_runs_exactly_the_readme_commands():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = blocks("sh")
    assert len(commands) == 2
    for command in commands:
        assert command in script
