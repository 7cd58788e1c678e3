"""The extension module only; everything else is in pyproject.toml."""

import platform
from glob import glob

import numpy
from setuptools import Extension, setup

X86 = platform.machine().lower() in ("x86_64", "amd64")
SOURCES = sorted(glob("csrc/core/*.c") + glob("csrc/binding/*.c"))
if not X86:
    SOURCES = [s for s in SOURCES if "avx" not in s]

kernel = Extension(
    "gaussmech._kernel",
    SOURCES,
    include_dirs=["csrc/core", numpy.get_include()],
    depends=glob("csrc/*/*.h"),
    define_macros=[("Py_LIMITED_API", "0x030B0000")] + ([("GM_X86", "1")] if X86 else []),
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
)

setup(ext_modules=[kernel], options={"bdist_wheel": {"py_limited_api": "cp311"}})
