"""The C core by itself: its test programs under ASan and UBSan and as it is shipped, its warnings,
and what its object files need and keep.

The programs in core/ are linked with the objects of csrc/core, which are compiled once for each
build. They count their checks and print every failure with the place and the system at hand.
"""

import ast
import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "csrc" / "core"
PROGRAMS = sorted(p.stem for p in (ROOT / "tests" / "core").glob("test_*.c"))
X86 = platform.machine().lower() in ("x86_64", "amd64")
SOURCES = sorted(p for p in CORE.glob("*.c") if X86 or "avx" not in p.name)
COMPILER = os.environ.get("CC", "cc").split()

MACROS = ["-DGM_X86"] if X86 else []
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

needs_compiler = pytest.mark.skipif(
    shutil.which(COMPILER[0]) is None, reason=f"no C compiler named {COMPILER[0]}"
)
pytestmark = needs_compiler


def shipped_flags():
    """extra_compile_args of setup.py."""
    for node in ast.walk(ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "extra_compile_args":
            return ast.literal_eval(node.value)
    raise AssertionError("setup.py has no extra_compile_args")


def run(command, **keywords):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **keywords)


class Build:
    """The core compiled with some flags; programs are compiled and linked when asked for."""

    def __init__(self, folder, core_flags, program_flags):
        self.folder, self.program_flags = folder, program_flags
        self.objects = [folder / f"{p.stem}.o" for p in SOURCES]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = pool.map(
                lambda job: self.compile(*job, core_flags),
                zip(SOURCES, self.objects, strict=True),
            )
        self.messages = dict(zip((p.name for p in SOURCES), done, strict=True))

    def compile(self, source, target, flags):
        """What the compiler says about one file."""
        include = ["-I", CORE, "-I", ROOT / "tests" / "core"]
        return run([*COMPILER, *flags, *MACROS, *include, "-c", source, "-o", target]).stderr

    def program(self, name):
        source = ROOT / "tests" / "core" / f"{name}.c"
        target, binary = self.folder / f"{name}.o", self.folder / name
        missing = [text for text in self.messages.values() if text]
        assert not missing, "\n".join(missing)
        said = self.compile(source, target, self.program_flags)
        assert not said, said
        libraries = ["-lm", "-ldl"] if sys.platform == "linux" else ["-lm"]
        linked = run(
            [*COMPILER, *self.program_flags, target, *self.objects, *libraries, "-o", binary]
        )
        assert linked.returncode == 0, linked.stderr
        return binary


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sanitized")
    trial = folder / "trial.c"
    trial.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    linked = run([*COMPILER, *SANITIZED, trial, "-o", folder / "trial"])
    if linked.returncode != 0:
        pytest.skip(f"{COMPILER[0]} links no sanitizers here: {linked.stderr[-200:]}")
    return Build(folder, [*STRICT, *SANITIZED], [*STRICT, *SANITIZED])


@pytest.fixture(scope="session")
def shipped(tmp_path_factory):
    # programs at -O1: gcc at -O3 warns of impossible sizes in unrolled loops of the tests
    flags = [*shipped_flags(), *STRICT]
    return Build(tmp_path_factory.mktemp("shipped"), flags, [*STRICT, "-O1"])


def lapack():
    """A shared library with 32-bit LAPACK, and what stands before and behind its names."""
    try:
        import scipy_openblas32
    except ImportError:
        import scipy

        package = Path(scipy.__file__).parent
        folders = [package.parent / "scipy.libs", package / ".dylibs"]
        for folder in folders:
            for path in sorted(folder.glob("libscipy_openblas*")):
                return [path, "scipy_", "_"]
        pytest.skip("neither scipy-openblas32 nor a SciPy that brings its own OpenBLAS")
    folder = Path(scipy_openblas32.get_lib_dir())
    name = scipy_openblas32.get_library()
    path = next(p for p in sorted(folder.iterdir()) if p.name.startswith(f"lib{name}."))
    return [path, "scipy_", "_"]


def run_program(build, name):
    arguments = lapack() if name == "test_large" else []
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        # the core never allocates; what the programs and OpenBLAS leave is no matter
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    done = run([build.program(name), *arguments], env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* checks, 0 failures$", done.stderr, re.M)


def test_every_source_of_the_core_has_a_test_program():
    kinds = {re.sub(r"^gm_(lanes)?.*", r"\1", p.stem) or p.stem[3:] for p in SOURCES}
    assert kinds == {name.removeprefix("test_") for name in PROGRAMS}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_finds_no_fault_under_the_sanitizers(name, sanitized):
    run_program(sanitized, name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_finds_no_fault_in_the_core_as_it_is_shipped(name, shipped):
    run_program(shipped, name)


@pytest.mark.parametrize("name", [p.name for p in SOURCES])
def test_the_core_compiles_without_a_warning(name, shipped):
    assert shipped.messages[name] == ""


# mathematics and memory functions of libc, the test of CPU features, the core itself
NEEDED = re.compile(
    r"gm_\w+|mem(cpy|set|move|cmp)|strcmp|frexp|ldexp|sqrt|fabs|copysign|fma|__cpu_\w+"
    r"|sin|cos|tan|asin|acos|atan2?|sinh|cosh|tanh|exp|log|pow"
    r"|_GLOBAL_OFFSET_TABLE_|__stack_chk_fail"
)


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
@pytest.mark.parametrize("index", range(len(SOURCES)), ids=[p.stem for p in SOURCES])
def test_the_core_calls_nothing_but_mathematics(index, shipped):
    listing = run(["nm", "-P", "-u", shipped.objects[index]])
    assert listing.returncode == 0, listing.stderr
    names = [line.split()[0].split("@")[0] for line in listing.stdout.splitlines()]
    if sys.platform == "darwin":
        names = [name.removeprefix("_") for name in names]
    assert [name for name in names if not NEEDED.fullmatch(name)] == []


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("size") is None, reason="sections are those of ELF"
)
@pytest.mark.parametrize("index", range(len(SOURCES)), ids=[p.stem for p in SOURCES])
def test_the_core_keeps_no_state(index, shipped):
    listing = run(["size", "-A", shipped.objects[index]])
    assert listing.returncode == 0, listing.stderr
    sizes = dict(re.findall(r"^(\.\S+)\s+(\d+)", listing.stdout, re.M))
    assert ".text" in sizes
    # constant tables of pointers are in .data.rel.ro
    state = {
        name: int(size)
        for name, size in sizes.items()
        if re.match(r"\.(data|bss|tdata|tbss)", name) and ".rel.ro" not in name
    }
    assert not any(state.values()), state


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_the_core_has_no_common_symbols_either(shipped):
    listing = run(["nm", "-P", *shipped.objects])
    kinds = {line.split()[1] for line in listing.stdout.splitlines() if len(line.split()) > 2}
    assert "T" in kinds
    assert not kinds & {"C", "c", "B", "b", "D"}


@pytest.mark.parametrize("path", sorted(CORE.glob("*.[ch]")), ids=lambda p: p.name)
def test_the_core_knows_nothing_of_python(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    assert not re.search(r"Python\.h|numpy|\bPy[A-Z_]\w*|\bnpy_\w+", text)
    assert not re.search(r"#\s*include\s*<(stdio|stdlib|errno|time|pthread|threads)\.h>", text)
