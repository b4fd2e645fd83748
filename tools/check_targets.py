"""Compile the engine for systems that this machine is not: macOS on ARM, Windows on x86-64.

Usage: ``python tools/check_targets.py [TARGET …] [--keep FOLDER]``; needs cmake, ninja and the package ``ziglang``,
which brings the headers of these systems and a compiler for them. Every file of the engine becomes an object, with the
flags of CMakeLists.txt for that system and warnings as errors, but for optimisation. Nothing is linked and nothing is
run. The bindings are left out: they need the Python headers of the system. So is macOS on x86-64: what knows the system
is compiled for macOS on ARM, and what knows the processor for Windows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# the name that the compiler knows, and CMake's names of system and processor
TARGETS = {
    "aarch64-macos": ("Darwin", "arm64"),
    "x86_64-windows-gnu": ("Windows", "AMD64"),
}
TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME {system})
set(CMAKE_SYSTEM_PROCESSOR {processor})
set(CMAKE_CXX_COMPILER "{folder}/c++")
set(CMAKE_AR "{folder}/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "{folder}/ranlib" CACHE FILEPATH "")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # a program would need the C++ library built first
set(CMAKE_OSX_SYSROOT "" CACHE STRING "")
set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "")
"""


def write_tools(folder: Path, target: str) -> None:
    """Write the compiler and its helpers as programs of one word each, which is what CMake takes."""
    commands = {"c++": f"c++ -target {target}", "ar": "ar", "ranlib": "ranlib"}
    for name, command in commands.items():
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {command} "$@"\n')
        program.chmod(0o755)


def compile_engine(target: str, folder: Path) -> bool:
    """Compile the engine for a target; say how it went."""
    folder.mkdir(parents=True, exist_ok=True)
    system, processor = TARGETS[target]
    write_tools(folder, target)
    toolchain = folder / "toolchain.cmake"
    toolchain.write_text(TOOLCHAIN.format(system=system, processor=processor, folder=folder))
    settings = {
        "CMAKE_TOOLCHAIN_FILE": toolchain,
        "CMAKE_BUILD_TYPE": "Debug",
        # zig would add debug information and sanitizers, and for Windows an option that it does not know itself
        "CMAKE_CXX_FLAGS_DEBUG": "-O0 -g0 -fno-sanitize=all -Wno-unused-command-line-argument",
        "CMAKE_DISABLE_PRECOMPILE_HEADERS": "ON",
        "SPINNEY_PYTHON": "OFF",
        "SPINNEY_WERROR": "ON",
    }
    configure: list[str | Path] = ["cmake", "-S", ROOT, "-B", folder / "build", "-G", "Ninja"]
    configure += [f"-D{name}={value}" for name, value in settings.items()]
    build: list[str | Path] = ["cmake", "--build", folder / "build", "--target", "spinney_engine"]
    for command in (configure, build):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout[-6000:], done.stderr[-3000:], sep="\n")
            return False
    return True


def main(arguments: list[str]) -> int:
    """Compile for the targets named on the command line, or for all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    known = ", ".join(TARGETS)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{known} (default: all)")
    parser.add_argument("--keep", type=Path, help="a folder for the objects, which a second run builds upon")
    options = parser.parse_args(arguments)
    for target in options.targets:
        if target not in TARGETS:
            parser.error(f"{target} is not a target that is known here: name one of {known}, or none for all.")
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        for target in options.targets or TARGETS:
            start = time.monotonic()
            folder = (options.keep or Path(scratch)).resolve() / target
            good = compile_engine(target, folder)
            n_objects = len([*folder.rglob("*.o"), *folder.rglob("*.obj")])
            print(f"{target}: {n_objects} objects, {'good' if good else 'FAILED'}, {time.monotonic() - start:.0f} s")
            if not good:
                failed.append(target)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
