"""Findings on hostile rollouts, and readers that know nothing of how the exports are written."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import hostile
import pytest

import graft_core as gc
from graft_core.insight import Findings


class Seen(HTMLParser):
    """Tags, attributes and texts of a page, as a browser's tokeniser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self._open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] += data
        elif self._open != "style":
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


@pytest.fixture(scope="session")
def evil_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile.write(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def evil(evil_file: Path) -> Findings:
    """Findings with chance on rollouts whose every text means harm."""
    found = gc.findings(gc.load(str(evil_file)), shuffles=20)
    assert found.good.size and found.lost.size
    return found


@pytest.fixture(scope="session")
def sample() -> Findings:
    import graft_sample_data

    return gc.findings(gc.load(graft_sample_data.paths()[0]), shuffles=20)


@pytest.fixture(scope="session")
def read() -> type[Seen]:
    return Seen
