"""Rollout text inside Markdown: every sign stays the sign it is."""

from __future__ import annotations

import pytest

from graft_app.views.text import JOINER, literal


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (":material/delete:", f"\\:{JOINER}material/delete\\:"),
        (":streamlit: :smile:", f"\\:{JOINER}streamlit\\: \\:{JOINER}smile\\:"),
        ("a -> b <-> c", f"a \\-{JOINER}\\> b \\<{JOINER}\\-{JOINER}\\> c"),
        ("x >= 1, y ~= 2 -- z", f"x \\>{JOINER}\\= 1, y \\~{JOINER}\\= 2 \\-{JOINER}\\- z"),
        ("http://a.b", f"h{JOINER}ttp\\://a\\.b"),
        ("at 12:30, :red[no]", "at 12\\:30, \\:red\\[no\\]"),
    ],
)
def test_no_word_becomes_an_icon_a_link_or_another_sign(text: str, wanted: str) -> None:
    assert literal(text) == wanted
