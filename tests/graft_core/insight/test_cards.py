"""Finding cards: what stands on them, that nothing redacted does, that text stays text, and that they can be checked."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graft_core as gc
from graft_core.errors import InputError, UsageError
from graft_core.insight._card_markdown import fenced, literal
from graft_core.insight._card_text import Redaction, matches, redaction
from graft_core.insight.cards import Card, data_sha256, find_step, make_card, read_card, verify_card
from graft_core.insight.chance import chance
from graft_core.insight.findings import Findings, findings
from graft_core.provenance import sha256_of

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "</text><script>alert(1)</script> ![x](http://evil.example/x.png) [a](javascript:b) `c` ``` | **d** <b>&amp; \x1b[31m\u202e"
)
ALLOWED = {"svg", "title", "desc", "rect", "path", "circle", "polygon", "line", "text"}


@pytest.fixture(scope="module")
def sample(root: Path) -> Path:
    return root / "sample_data" / "household.jsonl"


@pytest.fixture(scope="module")
def found(sample: Path) -> Findings:
    return findings(gc.load(sample))


@pytest.fixture(scope="module")
def card(found: Findings, sample: Path) -> Card:
    return make_card(found, int(found.good[0]), [sample], chance=chance(found.batch))


def write(path: Path, rollouts: dict[str, tuple[float, list[tuple[str, str]]]], group: str = "g", **more: Any) -> Path:
    """A step file: rollout id -> (outcome, [(observation, action), ...])."""
    same = {"group_id": group, **more}
    lines = [
        json.dumps({**same, "rollout_id": name, "step": t, "observation": o, "action": a, "outcome": outcome})
        for name, (outcome, steps) in rollouts.items()
        for t, (o, a) in enumerate(steps)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def three(path: Path, word: str, group: str = "g", rollout: str = "r1") -> Path:
    """One failed rollout with a good step, in whose texts `word` stands; two others that meet it on the way."""
    steps = [(f"start {word}", "wait"), (f"hall {word} hall", f"open {word} door"), (f"door {word}", "fall")]
    return write(
        path,
        {
            rollout: (0.0, steps),
            "r2": (1.0, [("elsewhere", "walk"), (f"door {word}", f"go {word}")]),
            "r3": (0.0, [(f"start {word}", "wait"), (f"hall {word} hall", "sit down")]),
        },
        group,
    )


def texts(card: Card) -> dict[str, str]:
    return {"json": card.json(), "markdown": card.markdown(), "svg": card.svg()}


def test_a_card_holds_the_numbers_of_the_findings(card: Card, found: Findings, sample: Path) -> None:
    row = found.rows(found.good[:1])[0]
    data = card.data
    for name in ("value_before", "value_after", "credit", "credit_shown", "baseline", "seen_by", "of"):
        assert data["numbers"][name] == row[name]
    assert (data["finding"]["group_id"], data["finding"]["rollout_id"], data["finding"]["step"]) == (
        row["group_id"], row["rollout_id"], row["step"],
    )  # fmt: skip
    assert data["evidence"]["observation"] == row["observation"]
    assert data["evidence"]["action"] == row["action"]
    assert data["version"] == gc.__version__
    assert data["data"]["files"] == [{"file": "household.jsonl", "sha256": sha256_of(sample)}]
    assert data["data"]["sha256"] == sha256_of(sample) == data_sha256([sample])
    assert "failed, but its step" in data["claim"]["sentence"]
    assert f"{row['value_before']:.2f} to {row['value_after']:.2f}" in data["claim"]["sentence"]
    assert data["chance"]["shuffles"] == 200
    assert data["certainty"]["low"] <= row["credit"] <= data["certainty"]["high"]
    assert data["settings"]["options"]["graft_td"]["gamma"] == 0.99
    assert str(sample.parent) not in card.json()  # where the data are kept is nobody's business


def test_what_was_done_in_the_moment_adds_up(card: Card, found: Findings) -> None:
    here = card.data["moment"]
    node = found.rows(found.good[:1])[0]["node"]
    assert sum(way["count"] for way in here["actions"]) == here["visits"] == int((found.graph.src == node).sum())
    assert [way["chosen"] for way in here["actions"]] == [True] + [False] * (len(here["actions"]) - 1)
    g = card.data["numbers"]["gamma"]
    for way in here["actions"]:
        assert way["credit"] == pytest.approx(g * way["to"]["value"] - here["value"], abs=1e-12)


def test_a_card_survives_its_files(card: Card, tmp_path: Path) -> None:
    paths = card.write(tmp_path / "new" / "folder")
    assert [p.suffix for p in paths] == [".json", ".md", ".svg"]
    again = read_card(paths[0])
    assert again.data == card.data
    assert again.markdown() == paths[1].read_text() == card.markdown()
    assert again.svg() == paths[2].read_text() == card.svg()
    assert paths[2].name in paths[1].read_text()
    assert len(list(paths[0].parent.iterdir())) == 3


def test_a_card_without_chance_says_so(found: Findings, sample: Path) -> None:
    card = make_card(found, int(found.good[0]), [sample])
    assert card.data["chance"] == {"left_out": True}
    assert "## Chance\n\nWhat outcomes dealt at random would give was left out" in card.markdown()
    assert verify_card(card, [sample.parent]).ok


def test_the_date_can_be_given_and_is_not_part_of_the_name(found: Findings, sample: Path) -> None:
    one = make_card(found, int(found.good[0]), [sample], made="2026-01-02")
    other = make_card(found, int(found.good[0]), [sample], made="2026-01-03")
    assert (one.data["made"], other.data["made"]) == ("2026-01-02", "2026-01-03")
    assert one.name == other.name
    assert make_card(found, int(found.good[1]), [sample]).name != one.name


def test_each_kind_of_step_is_called_what_it_is(found: Findings, sample: Path) -> None:
    succeeded = found.batch.success[found.batch.step_rollout] == 1
    bad = int(np.flatnonzero(succeeded & (found.credit < -1e-9))[0])
    fine = int(np.flatnonzero(succeeded & (found.credit > 1e-9))[0])
    kinds = [make_card(found, int(p), [sample]).data["claim"]["kind"] for p in (found.good[3], found.lost[0], bad, fine)]
    assert kinds == ["good", "lost", "bad", "step"]


def test_every_step_of_every_rollout_makes_a_card_that_verifies(vectors: Path) -> None:
    """Unknown outcomes, undefined credit, ends, loops: no step is special."""
    path = vectors / "mixed.jsonl"
    batch = gc.load(path)
    found = findings(batch)
    for position in range(0, batch.n_steps, max(batch.n_steps // 40, 1)):
        card = make_card(found, position, [path])
        ET.fromstring(card.svg())
        assert "nan" not in card.svg().lower()
        assert card.markdown()
        assert verify_card(card, [path.parent]).ok


@pytest.mark.parametrize(
    "changes",
    [
        {"estimator": "graft", "lam": 0.8},
        {"estimator": "gigpo", "baseline": "rloo", "gamma": 0.9},
        {"rules": ("history:2",), "sinks": "merge", "prior": 0.5},
        {"weighting": "distinct", "actions": "raw", "estimator": "path_gae"},
    ],
)
def test_settings_travel_with_the_card(sample: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    found = findings(gc.load(sample), **changes)
    position = int(found.good[0]) if found.good.size else int(found.lost[0])
    path = make_card(found, position, [sample]).write(tmp_path)[0]
    assert verify_card(read_card(path), [sample.parent]).details == ()


def test_the_picture_is_self_contained_and_says_what_the_card_says(card: Card) -> None:
    tree = ET.fromstring(card.svg())
    assert {node.tag for node in tree.iter()} == {SVG + tag for tag in ALLOWED - {"polygon"}}
    for node in tree.iter():
        for name, value in node.attrib.items():
            assert "href" not in name
            assert not name.startswith("on")
            assert "url(" not in value
            assert "http" not in value
    words = " ".join(node.text or "" for node in tree.iter(SVG + "text"))
    here = card.data["moment"]
    for way in here["actions"]:
        assert way["action"] in words
        assert f"{way['count']} ×" in words
    assert f"chance of success {here['value']:.2f}" in words


def test_ends_have_shapes_of_their_own(found: Findings, sample: Path) -> None:
    last = found.batch.offsets[1:] - 1
    shapes = set()
    for position in (last[found.batch.success == 1][0], last[found.batch.success == 0][0]):
        tree = ET.fromstring(make_card(found, int(position), [sample]).svg())
        shapes |= {len((node.get("points") or "").split()) for node in tree.iter(SVG + "polygon")}
        assert "ends in" in " ".join(node.text or "" for node in tree.iter(SVG + "text"))
    assert shapes >= {10, 4}  # a star, a diamond


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    path = three(tmp_path / "bad.jsonl", HOSTILE, group=f"g {HOSTILE}", rollout=f"../../r1 {HOSTILE}")
    found = findings(gc.load(path))
    card = make_card(found, int(found.good[0]), [path])
    tree = ET.fromstring(card.svg())
    assert {node.tag for node in tree.iter()} <= {SVG + tag for tag in ALLOWED}
    assert "<script" not in card.svg()
    assert "<script>alert(1)</script>" in " ".join(node.text or "" for node in tree.iter())
    outside, fences = _split(card.markdown())
    assert "<" not in outside.replace("&lt;", "")
    assert len(re.findall(r"(?<!\\)\]\(", outside)) == 1  # the picture of the card itself
    assert "http:" not in outside
    assert len(fences) == 3
    assert all("<script>alert(1)</script>" in fence for fence in fences)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", card.markdown() + card.svg())
    paths = card.write(tmp_path / "out")
    assert all(p.parent == tmp_path / "out" for p in paths)
    assert re.fullmatch(r"[a-z0-9-]+", paths[0].stem)
    assert verify_card(read_card(paths[0]), [tmp_path]).ok


def _values(data: Any) -> list[Any]:
    """All leaves of plain data."""
    if isinstance(data, (dict, list)):
        return [leaf for inner in (data.values() if isinstance(data, dict) else data) for leaf in _values(inner)]
    return [data]


def _split(text: str) -> tuple[str, list[str]]:
    """Markdown outside fences, and what the fences hold (CommonMark: closed by a run at least as long as the opening one)."""
    outside, fences, fence = [], [], ""
    for line in text.splitlines():
        run = re.match(r"`{3,}", line)
        if not fence and run:
            fence = run.group()
            fences.append("")
        elif fence and re.fullmatch("`+", line) and len(line) >= len(fence):
            fence = ""
        elif fence:
            fences[-1] += line + "\n"
        else:
            outside.append(line)
    assert not fence
    return "\n".join(outside), fences


def test_a_markdown_reader_finds_no_markup_in_hostile_text(tmp_path: Path) -> None:
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    lines = ["# no heading", "1. no list", "---", "```", "<b>no tag</b>", "| a | b |", "- [ ] x", "~~~", "~~no~~", "&lt;"]
    lines.append(HOSTILE)
    path = three(tmp_path / "bad.jsonl", "\n\n".join(lines))
    found = findings(gc.load(path))
    card = make_card(found, int(found.good[0]), [path])
    tokens = reader.parse(card.markdown())
    kinds = [t.type for t in tokens] + [c.type for t in tokens for c in t.children or ()]
    assert kinds.count("image") == 1
    markup = {"html_block", "html_inline", "link_open", "em_open", "strong_open", "s_open", "hr", "ordered_list_open"}
    assert not markup & set(kinds)
    assert [t.content for t in tokens if t.type == "fence"] == [
        text + "\n" for text in card.data["evidence"].values()
    ]
    cells = [c.content for t in tokens for c in t.children or () if c.type == "text"]
    assert any("no heading" in cell for cell in cells)


@pytest.mark.parametrize("text", ["", "`", "```", "a\n````\nb", "x" * 5000])
def test_a_fence_is_longer_than_any_in_the_text(text: str) -> None:
    opening, *_, closing = fenced(text).split("\n")
    assert opening == closing + "text"
    assert closing not in "\n".join(fenced(text).split("\n")[1:-1])


def test_numbers_and_prose_read_well_in_the_source() -> None:
    assert literal("went from 0.22 to −0.31: so, that's it (really)!") == "went from 0.22 to −0.31: so, that's it (really)!"
    assert literal("a|b_c http://x.y") == r"a\|b\_c http\://x\.y"


SECRETS = ("Hunter Two", "sk-12345")


@pytest.mark.parametrize("shape", ["Hunter Two", "hunter\ntwo", "HUNTER  \t TWO", "hun\u200bter two", "aHunter Twob"])
def test_redacted_text_leaves_no_trace_and_the_card_still_verifies(tmp_path: Path, shape: str) -> None:
    path = three(tmp_path / "data.jsonl", f"{shape} and sk-12345", group=f"task {shape}", rollout=f"r {shape}")
    found = findings(gc.load(path))
    plain = make_card(found, int(found.good[0]), [path], chance=chance(found.batch, shuffles=20))
    card = make_card(found, int(found.good[0]), [path], redact=SECRETS, chance=chance(found.batch, shuffles=20))
    for name, text in texts(plain).items():
        assert re.search(r"hunter\s+two", text.replace("\\n", " "), re.IGNORECASE) or name == "svg"
    for text in texts(card).values():
        squeezed = re.sub(r"(\\n|\\t|\\u200b|\s)+", "", text).lower()
        assert "huntertwo" not in squeezed
        assert "hunter" not in squeezed
        assert "12345" not in squeezed
        assert "[redacted]" in text.replace("\\", "")
    assert card.data["numbers"] == plain.data["numbers"]
    assert card.data["redacted"] is True
    written = card.write(tmp_path / "out")
    assert not any("hunter" in p.name for p in written)
    checked = verify_card(read_card(written[0]), [tmp_path])
    assert checked.ok
    assert replace(checked, notes=()) == verify_card(plain, [tmp_path], [])
    fields = [str(value) for value in _values(card.data)]
    hidden = sum("[redacted]" in value for value in fields)
    assert checked.notes[0].startswith(f"{hidden} texts are redacted on this card")


def test_a_hidden_word_is_not_half_shown_where_a_text_is_cut(tmp_path: Path) -> None:
    secret = "correct horse battery staple"
    for before in range(560, 605, 3):  # around the length at which excerpts are cut
        path = three(tmp_path / "data.jsonl", "x" * before + secret + "y" * 50)
        found = findings(gc.load(path))
        card = make_card(found, int(found.good[0]), [path], redact=[secret])
        assert "corr" not in card.json()
        assert "[red…" not in card.json()
        assert verify_card(card, [tmp_path]).ok
    hidden = Redaction((secret,))
    for before in range(1965, 2005):  # and at which texts are not looked at any more
        assert "corr" not in hidden.excerpt("y" * before + secret, 0)
    assert hidden.hides("y" * 50_000 + secret)


def test_a_hash_that_would_give_a_short_text_away_is_left_out(tmp_path: Path) -> None:
    path = three(tmp_path / "data.jsonl", "pin 4711")
    found = findings(gc.load(path))
    rows = make_card(found, int(found.good[0]), [path], redact=["4711"]).data["fingerprint"]
    assert [row["texts"] for row in rows] == [None, None, None]
    rows = make_card(found, int(found.good[0]), [path], redact=["elsewhere"]).data["fingerprint"]
    assert [row["texts"] is None for row in rows] == [False, True, False]


@pytest.mark.parametrize("everything", [{"redact": "all"}, {"redact_all": True}])
def test_everything_can_be_redacted(sample: Path, found: Findings, tmp_path: Path, everything: dict[str, Any]) -> None:
    card = make_card(found, int(found.good[0]), [sample], **everything)
    for text in texts(card).values():
        for word in ("apple", "microwave", "kitchen", "study"):
            assert word not in text.lower()
    assert "household.jsonl" in card.json()
    assert verify_card(read_card(card.write(tmp_path)[0]), [sample.parent]).ok


def test_a_redacted_file_name_asks_for_the_path(tmp_path: Path) -> None:
    path = three(tmp_path / "acme-corp.jsonl", "x")
    found = findings(gc.load(path))
    card = make_card(found, int(found.good[0]), [path], redact=["Acme"])
    assert "acme" not in card.json().lower()
    with pytest.raises(InputError, match="redacted on this card; expected the path"):
        verify_card(card, [tmp_path])
    assert verify_card(card, [], [path]).ok


def test_wrong_calls_are_named(found: Findings, sample: Path) -> None:
    with pytest.raises(UsageError, match="empty"):
        make_card(found, 0, [sample], redact=["a", " \n"])
    with pytest.raises(UsageError, match="files"):
        make_card(found, 0, [])
    with pytest.raises(IndexError, match="positions are 0 to 1026"):
        make_card(found, 1027, [sample])
    batch = found.batch
    assert find_step(batch, "cool apple", "r5", 5) == int(found.good[0])
    with pytest.raises(InputError, match="no task 'nope'"):
        find_step(batch, "nope", "r1", 0)
    with pytest.raises(InputError, match="has no rollout 'r99'; it has 'r1'"):
        find_step(batch, "cool apple", "r99", 0)
    with pytest.raises(InputError, match="no step 99; its steps are 0 to"):
        find_step(batch, "cool apple", "r5", 99)


@pytest.mark.parametrize(
    ("shown", "whole", "fits"),
    [
        ("abc", "abc", True), ("abc", "abd", False), ("ab…", "abc", True), ("ab…", "xabc", False),
        ("a [redacted] c", "a secret c", True), ("a [redacted] c", "a secret d", False), ("[redacted]", "", True),
        ("a[redacted]b[redacted]c", "a1b2c", True), ("a[redacted]b[redacted]c", "a12c", False),
        ("ab[redacted]ba", "aba", False), ("", "x", False), ("“o…” went", "“open door” went", True),
    ],
)  # fmt: skip
def test_a_shown_text_matches_only_what_it_can_come_from(shown: str, whole: str, fits: bool) -> None:
    assert matches(shown, whole) is fits


def test_redaction_of_overlapping_words_hides_the_longer(tmp_path: Path) -> None:
    hide = redaction(["apple", "apple pie"])
    assert hide.excerpt("one Apple Pie, one apple.", 100) == "one [redacted], one [redacted]."
    assert redaction("apple").word("applesauce") == "[redacted]sauce"
    assert redaction([]).word("a\x00b") == "a\x00b"  # a name stays what it is, unless something in it is hidden
