"""Rules that a reader of one file cannot see: who imports whom, what is never called, how long a file is."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CODE = (".py", ".js", ".css")
SKIPPED = {".git", ".venv", "build", "dist", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
LONGEST = 400
HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "ray", "trl", "datasets", "gymnasium"}
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec"}
UNSAFE_METHODS = {"read_pickle", "to_pickle"}
UNSAFE_FUNCTIONS = {"torch.load", "yaml.load", "yaml.unsafe_load", "os.system", "os.popen"}
UNSAFE_KEYWORDS = {"unsafe_allow_html", "unsafe_allow_javascript", "allow_pickle", "shell"}
# written so that this file does not contain what it looks for
MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:(?:work|root|home|tmp)/)\w")
REGISTRY_HOSTS = re.compile(r"pypi[.]org|files[.]pythonhosted|registry[.]npmjs|deb[.]debian")


def files(root: Path) -> list[Path]:
    """The files that are or will be in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode == 0:
        found = [root / name for name in listed.stdout.split("\0") if name]
    else:
        found = [path for path in root.rglob("*") if not SKIPPED & set(path.relative_to(root).parts)]
    return sorted(path for path in found if path.is_file())


def sources(root: Path, *folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Every Python file under the folders with its syntax tree."""
    for path in files(root):
        name = path.relative_to(root).as_posix()
        if name.endswith(".py") and name.split("/")[0] in folders:
            yield name, ast.parse(path.read_text(encoding="utf-8"), name)


def imported(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    return [statement.module or ""] if isinstance(statement, ast.ImportFrom) else []


def at_module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported, `if TYPE_CHECKING` left out."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(statement.test):
                yield from at_module_level(statement.body)
            yield from at_module_level(statement.orelse)
        elif isinstance(statement, ast.Try):
            for part in (statement.body, statement.orelse, statement.finalbody):
                yield from at_module_level(part)
            for handler in statement.handlers:
                yield from at_module_level(handler.body)
        elif isinstance(statement, (ast.With, ast.ClassDef)):
            yield from at_module_level(statement.body)


def unsafe(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of everything that could run or render foreign text."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in imported(node):
                if name.split(".")[0] in UNSAFE_MODULES:
                    yield node.lineno, f"import {name}"
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in UNSAFE_CALLS:
                yield node.lineno, f"{called.id}()"
            if isinstance(called, ast.Attribute) and (
                ast.unparse(called) in UNSAFE_FUNCTIONS or called.attr in UNSAFE_METHODS
            ):
                yield node.lineno, f"{ast.unparse(called)}()"
            for keyword in node.keywords:
                if keyword.arg in UNSAFE_KEYWORDS and not (
                    isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                ):
                    yield node.lineno, f"{keyword.arg}="


def test_imports_keep_their_direction(root: Path) -> None:
    """The contracts in pyproject.toml: the library never imports the app, and data flows one way."""
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [command, "--no-cache"], cwd=root, capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


def test_heavy_packages_are_imported_inside_functions_only(root: Path) -> None:
    found = [
        f"{name}:{statement.lineno} imports {module}"
        for name, tree in sources(root, "graft_core", "app", "sample_data")
        for statement in at_module_level(tree.body)
        for module in imported(statement)
        if module.split(".")[0] in HEAVY
    ]
    assert found == []


def test_heavy_packages_stay_in_their_rooms(root: Path) -> None:
    # embeddings for the rule similarity:TAU@MODEL, imported inside functions only
    rooms = ("graft_core/live/", "graft_core/trainers/", "graft_core/runs/", "graft_core/states/_embeddings.py")
    found = [
        f"{name}:{node.lineno} imports {module}"
        for name, tree in sources(root, "graft_core", "sample_data")
        if not name.startswith(rooms)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in imported(node)
        if module.split(".")[0] in HEAVY
    ]
    assert found == []


def test_nothing_foreign_is_evaluated_unpickled_or_rendered(root: Path) -> None:
    found = [
        f"{name}:{line} {what}"
        for name, tree in sources(root, "graft_core", "app", "sample_data", "benchmarks")
        for line, what in unsafe(tree)
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from cloudpickle import loads",
        "eval(text)",
        "st.markdown(text, unsafe_allow_html=True)",
        "st.markdown(text, unsafe_allow_html=flag)",
        "torch.load(path)",
        "yaml.load(text)",
        "np.load(path, allow_pickle=True)",
        "pd.read_pickle(path)",
        "subprocess.run(text, shell=True)",
    ],
)
def test_the_search_for_unsafe_calls_finds_them(code: str) -> None:
    assert list(unsafe(ast.parse(code)))


@pytest.mark.parametrize("code", ["model.eval()", "np.load(path, allow_pickle=False)", "json.load(file)"])
def test_the_search_for_unsafe_calls_leaves_the_rest_alone(code: str) -> None:
    assert list(unsafe(ast.parse(code))) == []


def test_scripts_in_the_page_show_text_as_text(root: Path) -> None:
    sinks = r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval)\b"
    forbidden = re.compile(sinks + r"\s*(?:=[^=]|\(|\+=)")
    found = [
        f"{path.relative_to(root)}:{number}"
        for path in files(root)
        if path.suffix == ".js"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if forbidden.search(line)
    ]
    assert found == []


def test_no_file_is_too_long_to_read(root: Path) -> None:
    lengths = {
        path.relative_to(root).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in files(root)
        if path.suffix in CODE
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_no_path_of_a_machine_and_no_registry_is_named(root: Path) -> None:
    found = []
    for path in files(root):
        name = path.relative_to(root).as_posix()
        if name.startswith(("tests/vectors/", "sample_data/")) and path.suffix != ".py":
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line) or REGISTRY_HOSTS.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert found == []


def test_no_other_host_is_named_in_what_the_browser_gets(root: Path) -> None:
    """The app works without a network, and a page that names another host would sooner or later ask it."""
    pattern = re.compile(r"(?:https?|wss?):" + r"//(?!127\.0\.0\.1|localhost|\{|\[|www\.w3\.org)")
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()[:100]}"
        for path in files(root)
        if path.relative_to(root).parts[0] == "app" and path.suffix in (*CODE, ".toml", ".html")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []
