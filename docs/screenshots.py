"""The README's pictures, taken from the running app on the sample data: `python docs/screenshots.py`.

Needs the app and an installed Chromium (or Playwright's own).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent / "images"
VIEWS = {
    "findings.png": ("", 980),
    "graph.png": ("graph?task=clean+fork&a=graft_td", 960),
}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    """Start the app, visit each view, save it, stop the app."""
    FOLDER.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = "import sys; from graft_core.cli import main; sys.exit(main())"
    app = subprocess.Popen(
        [sys.executable, "-c", program, "app", "--port", str(port)], env={**os.environ, "GRAFT_OPEN_BROWSER": "0"}
    )
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            for name, (where, height) in VIEWS.items():
                page = browser.new_page(viewport={"width": 1280, "height": height}, device_scale_factor=1)
                page.goto(f"http://127.0.0.1:{port}/{where}")
                page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=120_000)
                page.wait_for_timeout(4000)
                page.screenshot(path=FOLDER / name)
                print(f"{FOLDER / name}")
    finally:
        app.terminate()
        app.wait(10)


if __name__ == "__main__":
    main()
