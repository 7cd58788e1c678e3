"""The layers: imports point down, includes stay inside, nothing heavy comes with the package."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "gaussmech"
CORE = ROOT / "csrc" / "core"

# a module may import from modules of a smaller layer only
LAYERS = {
    "errors": 0,
    "results": 0,
    "_kernel": 1,
    "digits": 1,
    "graph": 1,
    "trace": 2,
    "inputs": 1,
    "verdicts": 1,
    "diagnosis": 2,
    "kernel": 3,
    "program": 3,
    "bodies": 4,
    "scene": 5,
    "assembly": 6,
    "forces": 6,
    "friction": 6,
    "constraints": 7,
    "joints": 8,
    "reading": 8,
    "start": 9,
    "system": 10,
    "ufuncs": 3,
    "virtual": 4,
    "formulations": 5,
    "residuals": 5,
    "report": 6,
    "check": 7,
    "principles": 7,
    "plot": 8,
    "__main__": 11,
    "__init__": 12,
}
MODULES = sorted(PACKAGE.glob("*.py"))


def package_imports(path):
    """Modules of the package that a module imports to run: names of types alone do not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING":
            block.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (
            node.level or (node.module or "").startswith("gaussmech")
        ):
            module = (node.module or "").removeprefix("gaussmech").strip(".")
            yield from [module] if module else [alias.name for alias in node.names]


def test_every_module_has_a_layer():
    assert {p.stem for p in MODULES} == set(LAYERS) - {"_kernel"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.stem)
def test_imports_point_down(path):
    for name in package_imports(path):
        assert LAYERS[name] < LAYERS[path.stem], f"{path.stem} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.stem)
def test_only_the_kernel_layer_touches_the_extension(path):
    if "_kernel" in package_imports(path):
        assert path.stem in ("kernel", "program", "ufuncs", "__init__")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.stem)
def test_modules_import_only_the_standard_library_and_numpy_at_the_top(path):
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        for name in names:
            top = name.split(".")[0]
            assert top == "numpy" or top in sys.stdlib_module_names, f"{path.stem} imports {name}"


def test_importing_the_package_loads_numpy_and_the_extension_only():
    code = (
        "import sys, gaussmech\n"
        "print([m for m in ('scipy', 'sympy', 'matplotlib', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", sorted(CORE.glob("*.[ch]")), ids=lambda p: p.name)
def test_the_core_includes_only_libc_and_itself(path):
    allowed = {"math.h", "stddef.h", "stdint.h", "string.h", "immintrin.h"}
    for kind, name in re.findall(r'^#include ([<"])([^>"]+)', path.read_text(), re.M):
        if kind == '"':
            assert (CORE / name).exists(), name
        else:
            assert name in allowed, name
    if "immintrin" in path.read_text():
        assert path.name in ("gm_lanes_avx2.c", "gm_lanes_avx512.c")


@pytest.mark.parametrize("path", sorted(CORE.glob("*.[ch]")), ids=lambda p: p.name)
def test_the_core_neither_allocates_nor_prints_nor_exits(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    assert not re.search(r"\b(malloc|calloc|realloc|free|printf|fprintf|exit|abort)\s*\(", text)


@pytest.mark.parametrize("path", sorted(CORE.glob("*.[ch]")), ids=lambda p: p.name)
def test_only_one_header_spells_lapack_names(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    if path.name != "gm_lapack.h":
        # others may call through the table, never declare or link
        assert not re.search(
            r"\b(?<!->)d(potrf|geqrf|geqp3|ormqr|gemm|syrk|trsm|gemv|trsv)_?\s*\(", text
        )


@pytest.mark.parametrize("path", sorted(CORE.glob("*.c")), ids=lambda p: p.name)
def test_instruction_sets_are_chosen_in_one_file(path):
    if path.name != "gm_dispatch.c":
        assert not re.search(r"^#\s*if.*(GM_X86|__AVX|__SSE|__x86)", path.read_text(), re.M)


def test_module_names_say_what_is_inside():
    for path in [*MODULES, *(ROOT / "tests").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        assert not re.search(r"utils?|helpers?|common|misc|base", path.stem), path
