"""The distribution: versions, files, settings, and what a start costs."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import socket
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import graft_app
import graft_core
import graft_sample_data
from graft_app import server

HEAVY = ("torch", "transformers", "ray", "numba", "pandas", "scipy", "networkx", "streamlit", "plotly")


def project(root: Path) -> dict[str, object]:
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def python(code: str, cwd: Path, **environment: str) -> str:
    """What a fresh interpreter prints, started in `cwd`."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- the distribution -------------------------------------------------------------------------------------


def test_one_version_everywhere(root: Path) -> None:
    version = project(root)["version"]
    assert importlib.metadata.version("graft-lab") == version
    assert graft_core.__version__ == version


def test_licence_is_apache_2(root: Path) -> None:
    assert project(root)["license"] == "Apache-2.0"
    text = (root / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_wheel_contains_packages_and_data(root: Path, tmp_path: Path) -> None:
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=False,
    ).stdout.split()  # fmt: skip
    copy = tmp_path / "source"
    folders = ("graft_core/", "app/", "sample_data/")
    wanted = [name for name in files if name.startswith(folders) or "/" not in name]
    if not wanted:
        pytest.skip("not a git checkout")
    for name in wanted:
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((root / name).read_bytes())
    build = "from setuptools.build_meta import build_wheel; import sys; build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    wheel = next(tmp_path.glob("graft_lab-*.whl"))
    packed = set(zipfile.ZipFile(wheel).namelist())

    renamed = {"app": "graft_app", "sample_data": "graft_sample_data", "graft_core": "graft_core"}
    expected = {
        f"{renamed[name.split('/')[0]]}/{name.split('/', 1)[1]}"
        for name in wanted
        if "/" in name and (root / name).is_file()
    }
    assert expected - packed == set()
    assert "graft_app/.streamlit/config.toml" in packed
    assert any(name.startswith("graft_sample_data/") and name.endswith(".jsonl") for name in packed)
    tops = {name.split("/")[0] for name in packed if ".dist-info/" not in name}
    assert tops == set(renamed.values())


def test_packages_are_found_from_any_folder(tmp_path: Path) -> None:
    code = "import graft_core, graft_app, graft_sample_data as data; print(graft_app.__file__, data.__file__)"
    assert python(code, tmp_path) == f"{graft_app.__file__} {graft_sample_data.__file__}"


def test_the_sample_data_is_there() -> None:
    paths = graft_sample_data.paths()
    assert [path.name for path in paths if path.name == "household.jsonl"] == ["household.jsonl"]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_the_command_is_installed(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("graft")
    done = subprocess.run([command, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert graft_core.__version__ in done.stdout


def test_constraints_pin_every_dependency_exactly(root: Path) -> None:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", pin) for pin in pins), pins
    pairs = [pin.split("==") for pin in pins]
    versions = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pairs}
    assert versions["torch"] == "2.13.0"
    extras = project(root)["optional-dependencies"]
    needed = [*project(root)["dependencies"], *extras["app"], *extras["live"], *extras["dev"]]
    names = {re.split(r"[<>=~!\[; ]", need)[0].lower() for need in needed}
    assert names - set(versions) == set()


def test_the_environment_is_the_pinned_one(root: Path) -> None:
    """What the tests ran with is what the file says; a build suffix such as `+cpu` is the same release."""
    differing = {}
    for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if "==" not in line:
            continue
        name, pinned = line.split("==")
        try:
            installed = importlib.metadata.version(name).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue  # another platform or Python may not need it
        if installed != pinned:
            differing[name] = (installed, pinned)
    if os.environ.get("CI"):
        assert differing == {}
    elif differing:
        pytest.skip(f"other versions than constraints.txt pins: {differing}")


def test_the_two_commands_of_the_readme_exist(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)\b", readme))
    assert {"app", "test"} <= named
    assert {"app", "test"} <= targets


def test_ci_runs_the_tests(root: Path) -> None:
    script = root / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    assert "make test" in script.read_text(encoding="utf-8")


def test_an_environment_for_the_app_does_not_pass_for_one_for_the_tests(root: Path, tmp_path: Path) -> None:
    """Each target has its own stamp: only the larger set of packages vouches for the smaller one."""
    venv = tmp_path / ".venv"
    venv.mkdir()

    def installs(target: str) -> bool:
        plan = subprocess.run(
            ["make", "-n", f"VENV={venv}", target], cwd=root, capture_output=True, text=True, check=False
        )
        assert plan.returncode == 0, plan.stderr
        return "pip install" in plan.stdout

    assert installs("app")
    assert installs("test")
    (venv / ".installed-app").touch()
    assert not installs("app")
    assert installs("test")
    (venv / ".installed-app").unlink()
    (venv / ".installed-test").touch()
    assert installs("app")
    assert not installs("test")


# --- what a start costs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["graft_core", "graft_app.server"])
def test_a_plain_import_loads_nothing_heavy(module: str, tmp_path: Path) -> None:
    code = (
        f"import sys, time; start = time.perf_counter(); import {module}; "
        f"print(time.perf_counter() - start, *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    seconds, *loaded = python(code, tmp_path).split()
    print(f"import {module}: {float(seconds):.3f} s")
    assert loaded == []


# --- the app's settings -----------------------------------------------------------------------------------


def test_every_setting_becomes_a_flag_that_streamlit_takes(tmp_path: Path) -> None:
    """Streamlit itself, in an empty folder and home, ends up with every value of config.toml."""
    values = server.config_values()
    code = (
        "import json, sys; from streamlit.web import cli, bootstrap\n"
        "from streamlit import config\n"
        "def show(**options):\n"
        "    bootstrap.load_config_options(flag_options=options)\n"
        "    print(json.dumps({key: config.get_option(key) for key in json.loads(sys.argv[1])}))\n"
        "import click\n"
        "click.command()(cli.configurator_options(show)).main(sys.argv[2:], standalone_mode=False)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(list(values)), *server.flags(values)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    for key, value in values.items():
        got = seen[key]
        if key.startswith("theme.") and isinstance(value, list):
            got = json.loads(got)
        assert got == value, key


def test_the_settings_keep_the_app_private() -> None:
    values = server.config_values()
    assert values["server.address"] == "127.0.0.1"
    assert values["browser.gatherUsageStats"] is False
    assert values["server.showEmailPrompt"] is False
    assert values["server.enableXsrfProtection"] is True
    assert values["server.enableCORS"] is True
    assert values["client.showErrorDetails"] == "none"


def test_credit_colours_run_from_vermilion_through_grey_to_blue() -> None:
    colours = server.config_values()["theme.chartDivergingColors"]
    assert len(colours) == 10  # Streamlit ignores any other number
    assert (colours[0], colours[-1]) == ("#D55E00", "#0072B2")
    assert colours[4] == colours[5] == "#969696"


def test_lists_are_repeated_and_theme_lists_are_json() -> None:
    assert server.flags({"server.allowedHosts": ["a", "b"], "theme.x": ["#1"], "server.headless": True}) == [
        "--server.allowedHosts=a",
        "--server.allowedHosts=b",
        '--theme.x=["#1"]',
        "--server.headless=true",
    ]


# --- the start of the app ---------------------------------------------------------------------------------


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The argument lists Streamlit would have been run with."""
    calls: list[list[str]] = []
    monkeypatch.setattr(server, "_serve", lambda arguments: calls.append(arguments) or 0)
    monkeypatch.delenv(server.PATHS_VARIABLE, raising=False)
    monkeypatch.setenv(server.BROWSER_VARIABLE, "0")
    return calls


def test_the_app_listens_on_this_machine_only_unless_asked(served, capsys) -> None:  # type: ignore[no-untyped-def]
    port = free_port()
    assert server.run([], port) == 0
    assert "--server.address=127.0.0.1" in served[0]
    assert f"--server.port={port}" in served[0]
    assert "Warning" not in capsys.readouterr().err

    assert server.run([], port, host="0.0.0.0") == 0
    assert "--server.address=0.0.0.0" in served[1]
    assert "--server.address=127.0.0.1" not in served[1]
    assert capsys.readouterr().err.startswith("Warning: 0.0.0.0 is open to other machines")


def test_a_variable_of_streamlit_does_not_open_the_app_to_others(served, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", "0.0.0.0")
    server.run([], free_port())
    assert "--server.address=127.0.0.1" in served[0]


def test_the_paths_reach_the_pages_absolute(served, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.jsonl").touch()
    assert server.run(["a b.jsonl"], free_port()) == 0
    assert server.given_paths() == [str(tmp_path / "a b.jsonl")]


def test_no_path_means_the_sample_data(served) -> None:  # type: ignore[no-untyped-def]
    server.run([], free_port())
    assert server.given_paths() == [str(path) for path in graft_sample_data.paths()]


def test_a_missing_file_is_one_sentence(served, capsys, tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert server.run([tmp_path / "nowhere.jsonl"]) == 1
    assert capsys.readouterr().err == f"graft: {tmp_path / 'nowhere.jsonl'}: no such file or folder.\n"
    assert served == []


def test_a_taken_port_is_one_sentence_and_no_port_takes_the_next(served, capsys) -> None:  # type: ignore[no-untyped-def]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert server.run([], port) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"graft: Cannot listen on 127.0.0.1 port {port}: ")
        assert error.count("\n") == 1
    assert server.run([], 70000) == 1
    assert capsys.readouterr().err.startswith("graft: Cannot listen on 127.0.0.1 port 70000: ")


def test_missing_streamlit_is_one_sentence(served, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == "streamlit" else object())
    assert server.run([]) == 1
    assert capsys.readouterr().err == 'graft: The app needs streamlit: pip install "graft-lab[app]"\n'


@pytest.mark.parametrize(
    ("variables", "opens"),
    [
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({}, False),
        ({"DISPLAY": ":0", "CI": "true"}, False),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "a b c d"}, False),
        ({"DISPLAY": ":0", "GRAFT_OPEN_BROWSER": "0"}, False),
    ],
)
def test_a_browser_opens_only_where_somebody_sits(variables, opens, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CI", "SSH_CONNECTION", "GRAFT_OPEN_BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert server.can_open_browser() is opens


def test_addresses_are_written_as_a_browser_takes_them() -> None:
    assert server.url_of("127.0.0.1", 1) == "http://127.0.0.1:1"
    assert server.url_of("0.0.0.0", 1) == "http://127.0.0.1:1"
    assert server.url_of("::", 1) == "http://127.0.0.1:1"
    assert server.url_of("::1", 1) == "http://[::1]:1"
    assert [server.is_loopback(a) for a in ("127.0.0.1", "localhost", "::1", "127.9.9.9")] == [True] * 4
    assert [server.is_loopback(a) for a in ("0.0.0.0", "::", "10.0.0.1", "example")] == [False] * 4
