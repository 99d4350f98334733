"""`graft inspect`: what it says about states and actions, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graft_core.cli import main


def rows(path: Path) -> Path:
    lines = [
        {
            "group_id": "g",
            "rollout_id": r,
            "step": t,
            "observation": o,
            "action": a,
            "action_text": f"{r}{t}: {a}",
            "outcome": x,
        }
        for r, x, steps in (("a", 1, "S:cd -:ls A:rm -:ls"), ("b", 0, "S:mv -:cat"))
        for t, (o, a) in enumerate(step.replace("-", "").split(":") for step in steps.split())
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_json_has_the_table_of_rules_and_what_merges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(rows(tmp_path / "a.jsonl")), "--json", "--actions", "raw"]) == 0
    data = json.loads(capsys.readouterr().out)
    needed = {"rollouts", "groups", "group_sizes", "steps", "successes", "failures", "unknown", "mixed_groups", "accepted"}
    assert needed | {"repaired", "rejected", "warnings"} <= set(data)
    assert {"low_information_merges", "actions_unshared"} <= {w["code"] for w in data["warnings"]}
    assert all(set(w) == {"code", "sentence", "count", "where"} for w in data["warnings"])
    assert [row["rules"] for row in data["rule_table"]][:2] == ["exact", "normalised"]
    assert data["rule_table"][0]["nodes"] == data["graph"]["nodes"] == 3
    assert data["low_information_merges"][0]["text"] == ""
    assert data["largest_merges"][0]["steps"] == 3
    assert data["action_table"]["proposed"] == "raw"  # two rollouts that share nothing under any rule
    assert {row["actions"] for row in data["action_table"]["rules"]} == {"raw", "parsed", "normalised", "verb"}


def test_text_marks_the_chosen_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(rows(tmp_path / "a.jsonl")), "--rule", "normalised", "--rule", "actions:1"]) == 0
    out = capsys.readouterr().out
    assert "* normalised+actions:1" in out
    assert "largest merges:" in out
    assert main(["inspect", str(rows(tmp_path / "a.jsonl"))]) == 0
    assert "  task g: 3 steps of 2 rollouts, empty: (empty)" in capsys.readouterr().out


def test_chance_is_said_where_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(rows(tmp_path / "a.jsonl"))
    assert main(["inspect", path]) == 0
    assert "by luck" not in capsys.readouterr().out
    assert main(["inspect", path, "--chance"]) == 0
    head, first = [line for line in capsys.readouterr().out.splitlines() if "beyond luck" in line or "* exact" in line]
    assert head.split()[-4:] == ["by", "luck", "beyond", "luck"] and " to " in first


def test_hostile_text_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rows(tmp_path / "a.jsonl")
    path.write_text(path.read_text().replace('"S"', r'"\u001b[2J\u202egone"'))
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "gone" in out
    assert not {"\x1b", "\u202e"} & set(out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--rule", "masked:/(/"], "not a regular expression"),
        (["--rule", "nope"], "unknown state rule 'nope'"),
        (["--rule", "prefix", "--rule", "exact"], "'exact' works on texts and has to stand before 'prefix'"),
        (["--rule", "field:hash"], "field:hash: 6 of 6 steps have no such field"),
        (["--rule", "similarity:0.9@/nowhere/at all"], "there is no model"),
        (["--rule", "edits:/nowhere.json"], "cannot be read"),
        (["--actions", "nope"], "unknown action rule 'nope'"),
        (["--sinks", "nope"], "sinks: 'nope' is not allowed"),
    ],
)
def test_wrong_rules_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["inspect", str(rows(tmp_path / "a.jsonl")), *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err and captured.err.count("\n") == 1
