"""The extension module only; everything else is in pyproject.toml.

GAUSSMECH_LAPACK=scipy-openblas32 in the environment links the LAPACK of that package
(to be installed beforehand, with ``pip install --no-build-isolation``) instead of taking
SciPy's at run time.
"""

import os
import platform
from glob import glob

import numpy
from setuptools import Extension, setup

X86 = platform.machine().lower() in ("x86_64", "amd64")
SOURCES = sorted(glob("csrc/core/*.c") + glob("csrc/binding/*.c"))
if not X86:
    SOURCES = [s for s in SOURCES if "avx" not in s]

linked: dict[str, list[str]] = {}
macros: list[tuple[str, str | None]] = [("Py_LIMITED_API", "0x030B0000")]
if X86:
    macros.append(("GM_X86", "1"))
if os.environ.get("GAUSSMECH_LAPACK") == "scipy-openblas32":
    import scipy_openblas32

    macros.append(("GM_LINKED_LAPACK", "1"))
    folder = scipy_openblas32.get_lib_dir()
    linked = {
        "library_dirs": [folder],
        "runtime_library_dirs": [folder],
        "libraries": [scipy_openblas32.get_library()],
    }

kernel = Extension(
    "gaussmech._kernel",
    SOURCES,
    include_dirs=["csrc/core", numpy.get_include()],
    depends=glob("csrc/*/*.h"),
    define_macros=macros,
    extra_compile_args=[
        "-std=c11",
        "-O3",
        "-fvisibility=hidden",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-ffp-contract=off",
        "-Wall",
        "-Wextra",
        "-Werror=implicit-function-declaration",
    ],
    py_limited_api=True,
    **linked,
)

setup(ext_modules=[kernel], options={"bdist_wheel": {"py_limited_api": "cp311"}})
