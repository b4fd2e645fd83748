"""Hold the direction of dependencies: which folder may include which, which module may import what.

Usage: ``python tools/check_dependencies.py [ROOT]``; one line per violation, exit 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# What each engine folder builds on directly; what those build on is allowed too.
ENGINE_FOLDERS: dict[str, tuple[str, ...]] = {
    "base": (),
    "data": ("base",),
    "criterion": ("data",),
    "cells": ("criterion",),
    "tree": ("base",),
    "grow": ("cells", "tree"),
    "predict": ("tree", "data"),
    "boost": ("tree", "data", "loss"),
    "loss": ("base",),
    "local": ("base",),
    "margin": ("base",),
    "learn": ("grow", "boost"),
}
PYTHON_HEADERS = re.compile(r"^(nanobind/|pybind11/|numpy/|Python\.h$)")
# The only file that knows the operating system.
SYSTEM_FILE = "cpp/base/platform.cpp"
SYSTEM_HEADERS = re.compile(r"^(sys/|mach/|(unistd|fcntl|pthread|signal|sched|dlfcn|io|process|[Ww]indows)\.h$)")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')

# The layers of python/spinney, lowest first. A module imports from its own package and from the layers below it, at
# module level, inside a function and for type checkers alike; packages of one layer do not know each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("_engine", "_names"),
    ("_data", "datasets", "criteria", "kernels"),
    ("_model",),
    ("_estimator",),
    ("inspect", "_cluster"),
    ("_tree", "_neighbours", "_svm", "_linear"),
    ("_forest", "_boosting"),
    ("_ensemble", "_interchange"),
    ("_evaluate",),
    ("cli", "learners", "teaching"),
)
FACE = "spinney"  # loads all public names: only what stands above every layer may import it
FACE_ALLOWED = ("cli", "__main__")
LAYER_OF = {package: layer for layer, packages in enumerate(LAYERS) for package in packages}
FIRST_LAYER_OF_SKLEARN = LAYER_OF["_estimator"]  # what predicts, and its files, do without scikit-learn

OPTIONAL_PACKAGES = frozenset(
    {"pandas", "polars", "pyarrow", "matplotlib", "click", "rich", "onnx", "treelite", "dask", "distributed"}
)
# Modules that exist only to serve an optional package may import it at module level.
OPTIONAL_PACKAGES_ALLOWED = {"spinney.cli": frozenset({"click", "rich"})}


def allowed_folders(folder: str) -> set[str]:
    """Return every folder that `folder` may include: itself and all it builds on, however far."""
    allowed = {folder}
    for below in ENGINE_FOLDERS[folder]:
        allowed |= allowed_folders(below)
    return allowed


def includes_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, header) for each include of a C++ file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield number, match[1]


def cpp_files(folder: Path) -> list[Path]:
    """Return the C++ sources and headers below a folder, sorted."""
    return sorted(p for p in folder.rglob("*") if p.suffix in {".h", ".hpp", ".cpp", ".cc", ".cu", ".inc"})


def check_engine_file(path: Path, root: Path) -> Iterator[str]:
    """Yield the violations of one file in cpp/."""
    where = path.relative_to(root)
    parts = path.relative_to(root / "cpp").parts
    if len(parts) < 2:
        yield f"{where}: engine files live in a folder of cpp/, not in cpp/ itself"
        return
    folder = parts[0]
    if folder not in ENGINE_FOLDERS:
        yield f"{where}: cpp/{folder} has no place in the rule; add it to ENGINE_FOLDERS"
        return
    for line, header in includes_of(path):
        target = header.split("/")[0]
        if PYTHON_HEADERS.match(header):
            yield f"{where}:{line}: includes {header}; only bindings/ may know Python"
        elif ".." in header.split("/") or ("/" not in header and (path.parent / header).exists()):
            yield f"{where}:{line}: includes {header}; write the path from cpp/, such as {folder}/name.h"
        elif target in ENGINE_FOLDERS and target not in allowed_folders(folder):
            yield f"{where}:{line}: {folder} may not include {target} ({header})"


def check_system_headers(path: Path, root: Path) -> Iterator[str]:
    """Yield what a file of the engine or the bindings includes that one system has and another has not."""
    where = path.relative_to(root).as_posix()
    for line, header in includes_of(path):
        if SYSTEM_HEADERS.match(header) and where != SYSTEM_FILE:
            yield f"{where}:{line}: includes {header}; only {SYSTEM_FILE} may know the operating system"


def check_cpp(root: Path) -> Iterator[str]:
    """Yield the violations of the include rule in cpp/, bindings/ and tests/cpp/."""
    for path in cpp_files(root / "cpp"):
        yield from check_engine_file(path, root)
    for path in (*cpp_files(root / "cpp"), *cpp_files(root / "bindings")):
        yield from check_system_headers(path, root)
    for path in cpp_files(root / "tests" / "cpp"):
        for line, header in includes_of(path):
            if PYTHON_HEADERS.match(header):
                yield f"{path.relative_to(root)}:{line}: includes {header}; only bindings/ may know Python"


def module_name(path: Path, source_root: Path) -> str:
    """Return the dotted name of a module below the source root."""
    parts = list(path.relative_to(source_root).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def imported_names(node: ast.AST, module: str, is_package: bool) -> list[str]:
    """Return the absolute dotted names that an import statement asks for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        anchor = module.split(".")
        drop = node.level - 1 if is_package else node.level
        anchor = anchor[: len(anchor) - drop]
        base = ".".join([*anchor, base] if base else anchor)
    return [base, *(f"{base}.{alias.name}" for alias in node.names)]


def is_type_checking(test: ast.expr) -> bool:
    """Say whether the test of an `if` is TYPE_CHECKING, whose body never runs."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def statements_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported: not function bodies, not TYPE_CHECKING."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.If) and is_type_checking(statement.test):
            yield from statements_at_import(statement.orelse)
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from statements_at_import(getattr(statement, field, []))
        for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
            yield from statements_at_import(part.body)


def is_within(module: str, owner: str) -> bool:
    """Say whether a module is `owner` or lies in the package `owner`."""
    return module == owner or module.startswith(owner + ".")


def optional_allowed(module: str) -> frozenset[str]:
    """Return the optional packages that a module may import at module level."""
    for owner, packages in OPTIONAL_PACKAGES_ALLOWED.items():
        if is_within(module, owner):
            return packages
    return frozenset()


def parsed_modules(root: Path) -> dict[str, tuple[Path, ast.Module]]:
    """Return path and syntax tree of every module below python/spinney, by dotted name."""
    paths = sorted((root / "python" / "spinney").rglob("*.py"))
    return {
        module_name(path, root / "python"): (path, ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))
        for path in paths
    }


def check_optional_packages(path: Path, module: str, syntax: ast.Module, root: Path) -> Iterator[str]:
    """Yield the imports of optional packages that run when a module is imported."""
    for statement in statements_at_import(syntax.body):
        packages = {name.split(".")[0] for name in imported_names(statement, module, path.name == "__init__.py")}
        for package in sorted((packages & OPTIONAL_PACKAGES) - optional_allowed(module)):
            where = f"{path.relative_to(root)}:{statement.lineno}"
            yield f"{where}: imports {package} at module level; import it where it is used"


def package_of(module: str) -> str:
    """Return the package of a module: the first name below spinney; empty for spinney itself."""
    return module.split(".")[1] if "." in module else ""


def imported_modules(node: ast.AST, module: str, is_package: bool, known: Iterable[str]) -> list[str]:
    """Return the modules that an import statement loads: of spinney's the nearest that exists, others as they are.

    ``from spinney import _engine`` asks for the engine, ``from spinney import load`` for the face.
    """
    names = imported_names(node, module, is_package)
    if isinstance(node, ast.ImportFrom):
        names = names[1:]
    return [_nearest_module(name, known) if is_within(name, FACE) else name for name in names]


def _nearest_module(name: str, known: Iterable[str]) -> str:
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return name


def check_layer(module: str, target: str) -> str | None:
    """Say what is wrong with one module of spinney importing another; None if nothing is."""
    own, other = package_of(module), package_of(target)
    if other == "":
        return None if own in FACE_ALLOWED else "imports spinney itself, which imports everything; name the module"
    if own == other or own in ("", "__main__"):
        return None
    if LAYER_OF[other] > LAYER_OF[own]:
        return f"imports {target}, which stands above it; imports only go down"
    if LAYER_OF[other] == LAYER_OF[own]:
        return f"imports {target}, which stands beside it; put what both need on a layer below"
    return None


def check_imports(modules: dict[str, tuple[Path, ast.Module]], root: Path) -> Iterator[str]:
    """Yield imports that go up, sideways or in a circle, and scikit-learn where it does not belong."""
    known = {*modules, "spinney._engine"}
    graph: dict[str, set[str]] = {}
    for module, (path, syntax) in modules.items():
        graph[module] = set()
        package = package_of(module)
        if package not in ("", "__main__") and package not in LAYER_OF:
            yield f"{path.relative_to(root)}: spinney.{package} has no layer; add it to LAYERS"
            continue
        for node in ast.walk(syntax):
            for target in imported_modules(node, module, path.name == "__init__.py", known):
                where = f"{path.relative_to(root)}:{getattr(node, 'lineno', 0)}"
                if target.split(".")[0] == "sklearn" and LAYER_OF.get(package, 99) < FIRST_LAYER_OF_SKLEARN:
                    yield f"{where}: imports scikit-learn below _estimator"
                if is_within(target, FACE) and target != module:
                    graph[module].add(target)
                    if package_of(target) not in ("", *LAYER_OF):
                        continue  # reported for the file itself
                    if fault := check_layer(module, target):
                        yield f"{where}: {module} {fault}"
    yield from circles(graph)


def circles(graph: dict[str, set[str]]) -> Iterator[str]:
    """Yield the modules of one circle of imports, if there is any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield f"{' ← '.join(error.args[1])}: a circle of imports"


def check_python(root: Path) -> Iterator[str]:
    """Yield the violations of the import rules in python/spinney."""
    modules = parsed_modules(root)
    for module, (path, syntax) in modules.items():
        yield from check_optional_packages(path, module, syntax, root)
    yield from check_imports(modules, root)


def main(arguments: list[str]) -> int:
    """Check the tree at the given root (default: the repository of this script)."""
    root = Path(arguments[0]).resolve() if arguments else Path(__file__).resolve().parent.parent
    missing = [name for name in ("cpp", "python/spinney") if not (root / name).is_dir()]
    if missing:
        print(f"{root} has no {' and no '.join(missing)}: nothing to check", file=sys.stderr)
        return 2
    violations = [*check_cpp(root), *check_python(root)]
    for violation in violations:
        print(violation)
    n_checked = len(cpp_files(root / "cpp")) + len(list((root / "python" / "spinney").rglob("*.py")))
    print(f"dependency rule: {n_checked} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
