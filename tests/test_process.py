"""The package in processes of their own: under ASan, called a million times, with threads, after a
fork, at every CPU level, and while it is imported.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import battery
import gaussmech as gm

ROOT = Path(__file__).parents[1]
COMPILER = os.environ.get("CC", "cc").split()
LINUX = sys.platform == "linux"
BATTERY = "import battery\nbattery.answers()\nbattery.calls()\nbattery.errors()\n"


def run(code, timeout=300, python=(), path=(), **environment):
    """Run code in a fresh interpreter that finds the modules of tests/; return its output."""
    search = os.pathsep.join(map(str, [*path, ROOT / "tests"]))
    done = subprocess.run(
        [sys.executable, *python, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={
            **os.environ,
            "PYTHONPATH": search,
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        },
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


# --- a sanitized build ---


def runtime():
    """The shared ASan runtime of the compiler, None where there is none."""
    if not LINUX or shutil.which(COMPILER[0]) is None:
        return None
    for name in ("libasan.so", f"libclang_rt.asan-{platform.machine()}.so"):
        found = subprocess.run(
            [*COMPILER, f"-print-file-name={name}"], capture_output=True, text=True, timeout=60
        ).stdout.strip()
        if os.path.isabs(found) and os.path.exists(found):
            return found
    return None


@pytest.fixture(scope="module")
def sanitized_package(tmp_path_factory):
    """A folder with the package, its extension built with ASan."""
    if runtime() is None:
        pytest.skip(f"{COMPILER[0]} brings no shared ASan runtime here")
    folder = tmp_path_factory.mktemp("sanitized")
    package = folder / "gaussmech"
    shutil.copytree(
        ROOT / "python" / "gaussmech",
        package,
        ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"),
    )
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    flags = ["-std=c11", "-O1", "-g", "-fPIC", "-fno-omit-frame-pointer", "-fsanitize=address"]
    if "clang" in COMPILER[0]:
        flags.append("-shared-libasan")
    flags += ["-DPy_LIMITED_API=0x030B0000", *(["-DGM_X86"] if x86 else [])]
    include = [ROOT / "csrc" / "core", np.get_include(), sysconfig.get_path("include")]
    flags += [f"-I{directory}" for directory in include]
    sources = [*(ROOT / "csrc" / "core").glob("*.c"), *(ROOT / "csrc" / "binding").glob("*.c")]
    sources = [p for p in sources if x86 or "avx" not in p.name]
    objects = [folder / f"{p.stem}.o" for p in sources]

    def compiled(job):
        source, target = job
        command = [*COMPILER, *flags, "-c", source, "-o", target]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in pool.map(compiled, zip(sources, objects, strict=True)):
            assert done.returncode == 0, done.stderr
    command = [*COMPILER, *flags, "-shared", *objects, "-lm", "-o", package / "_kernel.abi3.so"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def sanitized(code, folder, **environment):
    return run(
        code,
        path=[folder],
        LD_PRELOAD=runtime(),
        # the interpreter itself never frees everything
        ASAN_OPTIONS="detect_leaks=0",
        PYTHONMALLOC="malloc",
        OPENBLAS_NUM_THREADS="1",
        **environment,
    )


@pytest.mark.parametrize("level", gm.build_info()["cpu_levels"])
def test_a_sanitized_build_finds_no_fault(level, sanitized_package):
    code = "import gaussmech\nprint(gaussmech.__file__)\n" + BATTERY
    done = sanitized(code, sanitized_package, GAUSSMECH_CPU=level)
    assert Path(done.stdout.strip()).is_relative_to(sanitized_package)


def test_the_sanitizer_would_notice_a_read_beyond_an_array(sanitized_package):
    # the proof that the test above can fail: a view that reaches 8 bytes too far
    code = """
        import numpy as np
        from gaussmech import ufuncs
        M = np.eye(40)
        far = np.lib.stride_tricks.as_strided(M[:, 1:], (40, 40), M.strides)
        ufuncs.nonideal_force(far, np.ones((1, 40)), np.ones(40), np.nan)
        """
    with pytest.raises(AssertionError, match="heap-buffer-overflow"):
        sanitized(code, sanitized_package)


# --- memory ---

GROWTH = """
    import os
    import battery
    import gaussmech as gm
    {setup}
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    def repeat(count):
        for _ in range(count):
            call()
    repeat({warm})
    before = resident()
    repeat({count})
    print(resident() - before)
    """
ATTEMPT = """
    def call():
        try:
            {call}
        except {kind}:
            return
        raise AssertionError("nothing was raised")
    """

needs_statm = pytest.mark.skipif(not LINUX, reason="resident memory is read from /proc")


def growth(setup, count, warm=20_000):
    code = textwrap.dedent(GROWTH).format(
        setup=textwrap.dedent(setup), count=count, warm=min(warm, count)
    )
    return int(run(code).stdout)


# A leak of one small object (16 bytes or more) a call must show above the noise of an
# interpreter, some tens of kilobytes: the short tests find one in every call or in every third,
# the long ones one in every thirty.
SHORT, LONG = 1, 10
lengths = pytest.mark.parametrize(
    "length", [SHORT, pytest.param(LONG, marks=pytest.mark.long)], ids=["short", "long"]
)


@needs_statm
@lengths
def test_solutions_leave_no_memory_behind(length):
    setup = "given = battery.problem(6, 3)\ndef call():\n    gm.solve(*given)\n"
    assert growth(setup, 100_000 * length) < 2**19


@needs_statm
@pytest.mark.slow
@pytest.mark.parametrize("n", [40, 96], ids=["scratch-from-the-heap", "lapack"])
def test_large_solutions_leave_no_memory_behind(n):
    # one leaked block of scratch would be 100 kB and more
    setup = f"given = battery.problem({n}, 4)\ndef call():\n    gm.solve(*given)\n"
    assert growth(setup, 2_000, 200) < 2**20


@needs_statm
@lengths
@pytest.mark.parametrize("name", battery.faults())
def test_faults_leave_no_memory_behind(name, length):
    kind = battery.faults()[name][1].__name__
    kind = f"gm.{kind}" if hasattr(gm, kind) else kind
    setup = f"given = battery.faults()[{name!r}][0]\n" + textwrap.dedent(ATTEMPT).format(
        call="gm.solve(*given)", kind=kind
    )
    assert growth(setup, 20_000 * length, 5_000) < 2**18 * length**0.5


@needs_statm
@lengths
@pytest.mark.parametrize("name", battery.refusals())
def test_refusals_leave_no_memory_behind(name, length):
    setup = f"attempt = battery.refusals()[{name!r}][0]\n" + textwrap.dedent(ATTEMPT).format(
        call="attempt()", kind="(TypeError, ValueError)"
    )
    assert growth(setup, 15_000 * length, 5_000) < 2**17 * length**0.5


@needs_statm
def test_ten_thousand_batches_with_faults_leave_no_memory_behind():
    setup = """
        import numpy as np
        given = battery.problem(4, 2, batch=(9,))
        given[0][3] *= -1.0
        def call():
            gm.solve(*given, errors="status")
            gm.augment(*(x[:2] for x in given[:4]))
            gm.sensitivity(given[0][:2], given[2][:2])
        """
    assert growth(setup, 10_000, 2_000) < 2**20


# --- threads ---


def mixed_problems():
    sizes = [(1, 0), (2, 1), (6, 3), (9, 4), (12, 6), (17, 8), (24, 12), (96, 20), (110, 50)]
    batches = [(), (), (3,), (2, 9)]
    for seed in range(12):
        for n, m in sizes:
            batch = batches[seed % 4] if n < 96 else ()
            yield battery.problem(n, m, seed, batch, singular=m > 0 and seed % 3 == 0)


def all_bytes(motion):
    return [np.asarray(getattr(motion, name)).tobytes() for name in battery.FIELDS]


def test_eight_threads_get_the_bits_of_one():
    problems = list(mixed_problems())
    alone = [all_bytes(gm.solve(*p)) for p in problems]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            together = list(pool.map(lambda p: all_bytes(gm.solve(*p)), problems))
            assert together == alone


def test_threads_that_meet_at_the_first_large_problem_are_all_right():
    # LAPACK is fetched by whoever comes first; the others must not see half a table
    run("""
        import threading
        import battery
        import numpy as np
        import gaussmech as gm
        from gaussmech import ufuncs

        given = battery.problem(100, 30)
        options = (np.zeros(30), np.nan, 1e-9, 0.0, 0)
        gate = threading.Barrier(8)
        found = [None] * 8

        def work(i):
            gate.wait()
            found[i] = gm.solve(*given).qdd if i % 2 else ufuncs.gauss(*given, *options)[0]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert gm.build_info()["lapack"] != "not loaded"
        exact, _, _, condition = battery.reference(*given)
        for qdd in found:
            gap = np.linalg.norm(qdd - exact) / np.linalg.norm(exact)
            # one of them may still have used the own loops: right, but in other bits
            assert gap <= 8 * 101 * battery.EPS * condition, gap
        """)


def test_threads_run_while_a_batch_is_solved():
    # some tenths of a second for one call; whoever waited for it would stand still all the time
    given = [np.broadcast_to(x, (60_000, *x.shape)) for x in battery.problem(24, 12)]
    start = last = time.perf_counter()
    longest = 0.0
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(gm.acceleration, *given)
        while not job.done():
            now = time.perf_counter()
            longest = max(longest, now - last)
            last = now
        assert np.all(job.result() == job.result()[0])
    assert longest < 0.5 * (last - start)


# --- fork ---

FORK = """
    import os, sys
    import battery
    import numpy as np
    import gaussmech as gm

    given = battery.problem(200, 100)
    small = battery.problem(6, 3, batch=(20,))
    if {first}:
        before = gm.solve(*given).qdd.tobytes(), gm.solve(*small).qdd.tobytes()
    child = os.fork()
    found = gm.solve(*given).qdd, gm.solve(*small).qdd
    if child == 0:
        exact, _, _, condition = battery.reference(*given)
        gap = np.linalg.norm(found[0] - exact) / np.linalg.norm(exact)
        good = gap <= 8 * 201 * battery.EPS * condition
        if {first}:
            good = good and before == tuple(x.tobytes() for x in found)
        os._exit(0 if good else 7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    if {first}:
        assert before == tuple(x.tobytes() for x in found)
    """

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@needs_fork
@pytest.mark.parametrize("first", [True, False], ids=["after-a-large-problem", "before-any"])
def test_parent_and_child_go_on_solving_after_a_fork(first):
    run(FORK.format(first=first), timeout=120, python=["-W", "ignore::DeprecationWarning"])


# --- CPU levels ---


@pytest.mark.parametrize("level", gm.build_info()["cpu_levels"])
def test_every_cpu_level_passes_the_battery(level):
    code = f"""
        import gaussmech as gm
        info = gm.build_info()
        assert info["cpu"] == {level!r}, info
        print(info["lanes"])
        """
    done = run(textwrap.dedent(code) + BATTERY, GAUSSMECH_CPU=level, OPENBLAS_NUM_THREADS="1")
    assert int(done.stdout) in (2, 4, 8)


def test_programs_have_the_same_bits_at_every_level():
    code = """
        import numpy as np
        import gaussmech as gm
        f = gm.Program(lambda t, q: np.array([np.sin(q[0] * t) / q[1], np.exp(q @ q)]), (), 2)
        t, q = np.linspace(0.1, 2, 37), np.linspace(0.1, 3, 74).reshape(37, 2)
        second = f.rate((1.0, "qd")).rate((1.0, "qd", None))
        print(f(t, q).tobytes().hex(), f.jacobian("q")(t, q).tobytes().hex())
        print(second(t, q, q).tobytes().hex())
        """
    levels = gm.build_info()["cpu_levels"]
    assert len({run(code, GAUSSMECH_CPU=level).stdout for level in levels}) == 1


def test_the_best_level_is_taken_when_none_is_asked_for():
    code = "import gaussmech as gm; i = gm.build_info(); print(i['cpu'] == i['cpu_levels'][-1])"
    assert run(code, GAUSSMECH_CPU="").stdout.strip() == "True"


@pytest.mark.parametrize("name", ["nonsense", "AVX2", "plain,avx2"])
def test_a_level_that_does_not_exist_stops_the_import_by_name(name):
    code = """
        try:
            import gaussmech
        except ImportError as error:
            print(error)
        else:
            raise SystemExit("imported")
        """
    message = run(code, GAUSSMECH_CPU=name).stdout
    assert f"GAUSSMECH_CPU={name}" in message
    assert "no such level" in message


# --- import ---


def test_importing_leaves_scipy_and_the_plotting_and_symbolic_packages_out():
    code = """
        import sys
        import gaussmech
        heavy = {"scipy", "sympy", "matplotlib", "pandas", "xarray", "dask", "tqdm"}
        print(sorted(heavy & {name.split(".")[0] for name in sys.modules}))
        """
    assert run(code).stdout.strip() == "[]"


def test_small_problems_leave_scipy_out_and_large_ones_fetch_it():
    code = """
        import sys
        import battery
        import gaussmech as gm
        for n in (3, gm.build_info()["lapack_from"] - 1):
            gm.solve(*battery.problem(n, 2))
            assert "scipy" not in sys.modules
            assert gm.build_info()["lapack"] in ("not loaded", "linked"), gm.build_info()
        gm.solve(*battery.problem(gm.build_info()["lapack_from"], 2))
        print(gm.build_info()["lapack"], "scipy" in sys.modules)
        """
    lapack, loaded = run(code).stdout.split()
    assert lapack != "not" and (loaded == "True") == (lapack == "scipy")


def import_cost():
    """Microseconds that `import gaussmech` takes beyond what NumPy takes within it."""
    done = run("import gaussmech", python=["-X", "importtime"])
    lines = re.findall(r"import time:\s+\d+ \|\s+(\d+) \| +(\S+)$", done.stderr, re.M)
    cumulative = {name: int(time) for time, name in lines}
    return cumulative["gaussmech"] - cumulative["numpy"]


def test_importing_costs_20_ms_more_than_numpy_at_most():
    # the least of seven: what other processes take only adds
    assert min(import_cost() for _ in range(7)) <= 20_000
