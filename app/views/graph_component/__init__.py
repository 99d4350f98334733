"""The graph component's browser side: its own JavaScript and CSS, and vis-network read from the installed pyvis.

Three components, because code and data of one component travel in one message: the library (large, once), the
structure of a graph (once per graph), the picture (small, with every change of colour).
"""

from __future__ import annotations

import json
import re
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

LIBRARY_FILE: Final = "lib/vis-9.1.2/vis-network.min.js"
DRAWING_FILES: Final = (
    "geometry.js", "looks.js", "marks.js", "labels.js", "link.js", "help.js", "keyboard.js", "legend.js", "panel.js",
    "loader.js",
)


EMPTY: Final = "<span hidden></span>"
FRAME: Final = """
<div class="graft-panel">
  <div class="graft-tools">
    <span class="graft-caption"></span>
    <span class="graft-keys">drag to pan · Ctrl + wheel zooms · arrow keys walk · ? lists the keys</span>
    <button type="button" data-do="in" title="Zoom in (+)" aria-label="Zoom in">+</button>
    <button type="button" data-do="out" title="Zoom out (-)" aria-label="Zoom out">−</button>
    <button type="button" data-do="fit" title="Show everything (0)">Fit</button>
    <button type="button" data-do="png" title="Download this view as a PNG picture">PNG</button>
    <button type="button" data-do="help" title="What the keys do (?)" aria-label="Keys" aria-expanded="false">?</button>
  </div>
  <div class="graft-body"><div class="graft-graph"></div><dl class="graft-help" hidden></dl></div>
  <div class="graft-legend"></div>
  <div class="graft-spoken" aria-live="polite"></div>
</div>
"""


class Components(NamedTuple):
    """The three mounts of one picture."""

    library: ComponentRenderer
    store: ComponentRenderer
    view: ComponentRenderer


def components() -> Components:
    """Register the components (again with the same content is harmless) and return their mounting commands."""
    import streamlit.components.v2 as v2

    build = build_number()
    return Components(
        library=v2.component(f"graft_graph_library_{build}", html=EMPTY, js=library_script(), isolate_styles=False),
        store=v2.component(f"graft_graph_store_{build}", html=EMPTY, js=_module("store.js"), isolate_styles=False),
        view=v2.component(f"graft_graph_view_{build}", html=FRAME, css=_read("style.css"), js=_module("view.js")),
    )


@cache
def build_number() -> str:
    """Short hash of all browser code: a page left open over an update never mixes old code with new."""
    files = sorted(entry.name for entry in resources.files(__name__).iterdir() if entry.name.endswith((".js", ".css")))
    return blake2b((FRAME + "".join(map(_read, files))).encode(), digest_size=4).hexdigest()


@cache
def library_script() -> str:
    """vis-network and the drawing functions as one module.

    The library is a script that hangs itself on `exports` or on the page; it is given an `exports` of its own, so
    that no global name appears.
    """
    source = (resources.files("pyvis") / LIBRARY_FILE).read_text("utf-8")
    source = re.sub(r"//# sourceMappingURL=.*", "", source)
    wrapped = "const vis = {};\n(function (exports, module) {" + source + "\n}).call(globalThis, vis, { exports: vis });\n"
    return wrapped + _module(*DRAWING_FILES)


@cache
def _module(*names: str) -> str:
    head = f"const BUILD = {json.dumps(build_number())};\n"
    return head + "\n".join(_read(name) for name in ("registry.js", *names))


@cache
def _read(name: str) -> str:
    return (resources.files(__name__) / name).read_text("utf-8")
