"""Pages run as scripts, without a server or a browser."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from graft_app import server

sys.path += [str(Path(__file__).parent / "support"), str(Path(__file__).parent.parent / "graft_core" / "support")]
from app_pages import Open, run_page


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Open:
    """`opened(path, page="graph", lam="0.5")` runs one page on files with an address; without a path on the sample data.

    page: where it is not named, the `PAGE` of the test's module, else Findings.
    """
    own = getattr(request.module, "PAGE", "findings")

    def go(*paths: Path, page: str = own, **address: str) -> AppTest:
        monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(path) for path in paths]))
        return run_page(page, **address)

    return go
