"""The running app in a real Chromium: a server, a page, and a record of everything the page asked for."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Error, Page, ViewportSize, expect, sync_playwright

from graft_app import server

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE / "support"), str(HERE.parent / "graft_core" / "support")]
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
ADVICE = "no Chromium: `apt-get install chromium` or `python -m playwright install chromium` gets one"
LOCAL_HOSTS = {"127.0.0.1", "localhost", "::1"}
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # a request to any other host is recorded, and fails at once instead of waiting for a name server
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
START_SECONDS = 90.0
expect.set_options(timeout=20_000)  # milliseconds: parts of a page arrive one by one on a busy machine
VIEWPORT: ViewportSize = {"width": 1400, "height": 1000}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is a browser test."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Leaves each phase's report on the test, so that a failed one can be photographed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    setattr(item, f"report_{report.when}", report)


@dataclass(frozen=True)
class App:
    """A running `graft app`."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def output(self) -> str:
        """What the server printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


@dataclass
class Watch:
    """What a page did besides showing itself."""

    requests: list[str] = field(default_factory=list)
    console_errors: list[str] = field(default_factory=list)
    page_errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def foreign(self) -> list[str]:
        """The requests that left this machine."""
        return [url for url in self.requests if not _is_local(url)]


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme in ("data", "about"):
        return True
    if parts.scheme == "blob":  # blob:http://127.0.0.1:1234/...
        return _is_local(url.removeprefix("blob:"))
    return parts.hostname in LOCAL_HOSTS


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _app_command(paths: Sequence[str | Path], port: int) -> list[str]:
    program = "import sys; from graft_core.cli import main; sys.exit(main())"
    return [sys.executable, "-c", program, "app", *map(str, paths), "--port", str(port)]


def _script_command(script: Path, port: int) -> list[str]:
    values = server.config_values() | {"server.port": port}
    return [sys.executable, "-m", "streamlit", "run", *server.flags(values), "--", str(script)]


def _launch(command: Callable[[int], list[str]], extra_env: dict[str, str], folder: Path) -> App:
    port = _free_port()
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(port),
            cwd=folder,  # a folder without settings of its own, as a user's may be
            env={**os.environ, "GRAFT_OPEN_BROWSER": "0", **extra_env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    app = App(f"http://127.0.0.1:{port}", process, log)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{app.url}/_stcore/health", timeout=2):
                return app
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    _stop(app)
    pytest.fail(f"the app did not start on {app.url} (exit status {process.returncode}):\n{app.output()}")


def _stop(app: App) -> None:
    app.process.terminate()
    try:
        app.process.wait(10)
    except subprocess.TimeoutExpired:
        app.process.kill()
        app.process.wait(10)


@pytest.fixture(scope="session")
def _servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., App]]:
    """Starts each server once and stops them all at the end."""
    running: dict[str, App] = {}

    def start(kind: str, what: object, command: Callable[[int], list[str]], env: dict[str, str]) -> App:
        key = json.dumps([kind, what, env], sort_keys=True, default=str)
        if key not in running:
            running[key] = _launch(command, env, tmp_path_factory.mktemp(kind))
        return running[key]

    yield start
    for app in running.values():
        _stop(app)


@pytest.fixture(scope="session")
def start_app(_servers: Callable[..., App]) -> Callable[..., App]:
    """`start_app([path], extra_env={...})` starts the app on files; the same call, the same server."""

    def start(paths: Sequence[str | Path] = (), extra_env: dict[str, str] | None = None) -> App:
        return _servers("app", list(paths), lambda port: _app_command(paths, port), extra_env or {})

    return start


@pytest.fixture(scope="session")
def start_script(_servers: Callable[..., App]) -> Callable[..., App]:
    """`start_script(path)` serves one Streamlit script with the app's settings, to test a single part."""

    def start(script: Path, extra_env: dict[str, str] | None = None) -> App:
        return _servers("script", script, lambda port: _script_command(script, port), extra_env or {})

    return start


@pytest.fixture(scope="session")
def app(start_app: Callable[..., App]) -> App:
    """The app on the sample data."""
    return start_app()


# One browser for each module, not for the session: while Playwright runs, its event loop counts as running in
# this thread, and tests elsewhere that start a loop of their own would fail.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A headless Chromium: an installed one, else Playwright's own."""
    installed = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=installed, args=CHROMIUM_FLAGS)
        except Error as error:
            if installed:
                pytest.fail(f"{installed} does not start:\n{error}")
            if os.environ.get("CI"):
                pytest.fail(ADVICE)
            pytest.skip(ADVICE)
        yield browser
        browser.close()


@pytest.fixture
def watch() -> Watch:
    """The record of the test's page."""
    return Watch()


@pytest.fixture
def page(
    chromium: Browser, watch: Watch, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Page]:
    """A new, empty page. Afterwards: no request left this machine, and nothing it showed ran as script."""
    context = chromium.new_context(viewport=VIEWPORT, locale="en-US", accept_downloads=True)
    context.set_default_timeout(20_000)
    context.on("request", lambda sent: watch.requests.append(sent.url))
    page = context.new_page()
    page.on("websocket", lambda socket: watch.requests.append(socket.url))
    page.on("pageerror", lambda error: watch.page_errors.append(str(error)))
    page.on(
        "console",
        lambda message: watch.console_errors.append(message.text) if message.type == "error" else None,
    )

    def dismiss(dialog) -> None:  # type: ignore[no-untyped-def]
        watch.dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    yield page
    report = getattr(request.node, "report_call", None)
    if report is not None and report.failed:
        picture = tmp_path / "failed.png"
        with contextlib.suppress(Error):
            page.screenshot(path=picture)
            print(f"\npicture of the page: {picture}\nat {page.url}\nconsole: {watch.console_errors}")
    context.close()
    assert watch.foreign() == [], "the page asked another host"
    assert watch.dialogs == [], "the page opened a dialog: text of a rollout was run as script"


def _settle(page: Page) -> None:
    """Waits until the app's script has run to its end."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=60_000)


@pytest.fixture
def settle() -> Callable[[Page], None]:
    """`settle(page)` waits until the app's script has run to its end."""
    return _settle


@pytest.fixture
def visit(page: Page) -> Callable[..., Page]:
    """`visit(app)` or `visit(app, "graph?lambda=0.5")`: opens the app, waits until it has settled."""

    def go(app: App, where: str = "") -> Page:
        page.goto(f"{app.url}/{where}")
        page.wait_for_selector('[data-testid="stAppViewContainer"]')
        _settle(page)
        return page

    return go


@pytest.fixture
def graphs(start_script: Callable[..., App]) -> str:
    """Address of a server that draws made-up graphs, with the app's own settings."""
    return start_script(HERE / "graph_harness.py").url


@pytest.fixture
def draw(page: Page, graphs: str) -> Callable[[str], float]:
    """`draw("n=60")` opens a drawing and returns the seconds until it was painted."""
    from graph_picture import FIND

    def go(query: str) -> float:
        begun = time.perf_counter()
        page.goto(f"{graphs}/?{query}")
        page.wait_for_function(FIND)
        seconds = time.perf_counter() - begun
        _settle(page)
        return seconds

    return go
