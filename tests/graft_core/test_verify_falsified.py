"""`graft verify` on falsified, stripped and broken cards: what was done to them is named, and none is called reproduced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from card_files import change_card, falsified
from command_line import run

import graft_core as gc


def test_a_card_of_another_version_is_reproduced_where_its_words_are_the_same(
    card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_card(card, "version", to="0.0.9")
    assert run(capsys, "verify", str(card))[:2] == (0, "reproduced\n")


def test_other_words_of_another_version_are_named_and_not_called_reproduced(
    card: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_card(card, "version", to="0.0.9")
    change_card(card, "claim", "sentence", to="Rollout r5 succeeded; this tool is wonderful.")
    change_card(card, "claim", "title", to="A proof")
    status, out, err = run(capsys, "verify", str(card))
    lines = [line.strip() for line in out.splitlines()]
    assert (status, err, lines[0]) == (1, "", "not reproduced")
    said = f"the wording differs; the card was made by version 0.0.9, this is {gc.__version__}: numbers reproduced"
    assert lines[1] == said
    assert any(line.startswith("claim.title is 'A good step in a failed rollout', the card says 'A proof'") for line in lines)
    change_card(card, "numbers", "credit", to=0.5)
    out = run(capsys, "verify", str(card))[1]
    assert "numbers not reproduced" in out
    assert "the card by 0.0.9" in out


@pytest.mark.parametrize(
    "keys",
    [
        ("claim", "sentence"), ("claim", "title"), ("claim", "because", 0), ("claim", "formulas", 0, "text"),
        ("evidence", "observation"), ("evidence", "action"), ("moment", "text"), ("moment", "actions", 0, "action"),
        ("moment", "actions", 0, "to", "text"), ("certainty", "sentence"), ("chance", "sentence"), ("finding", "group_id"),
        ("finding", "rollout_id"), ("fingerprint", 0, "id"), ("settings", "options", "grpo", "statistics"), ("data", "name"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("hidden", ["[redacted]", "…"])
def test_nothing_is_hidden_on_a_card_that_is_not_redacted(
    card: Path, capsys: pytest.CaptureFixture[str], keys: tuple[Any, ...], hidden: str
) -> None:
    change_card(card, *keys, to=hidden)
    status, out, err = run(capsys, "verify", str(card))
    assert (status, err) == (1, "")
    assert out.startswith("not reproduced\n")
    assert f"'{hidden}'" in out


def test_a_redacted_card_hides_only_what_redaction_hides(card: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = card.read_text()

    def verified(*changes: tuple[tuple[Any, ...], Any]) -> tuple[int, str]:
        card.write_text(original)
        change_card(card, "redacted", to=True)
        for keys, to in changes:
            change_card(card, *keys, to=to)
        return run(capsys, "verify", str(card))[:2]

    status, out = verified((("evidence", "action"), "open [redacted]"))
    assert status == 0
    assert out.splitlines()[0] == "reproduced"
    assert "1 text is redacted on this card, and what is hidden in it was not checked: evidence.action" in out
    for keys in (
        ("claim", "title"), ("claim", "sentence"), ("claim", "because", 1), ("claim", "formulas", 0, "text"), ("claim", "kind"),
        ("certainty", "meaning"), ("chance", "sentence"), ("settings", "options", "grpo", "statistics"),
    ):  # fmt: skip
        status, out = verified((keys, "[redacted]"))
        assert (status, out.splitlines()[0]) == (1, "not reproduced"), keys
    assert verified((("finding", "group_id"), "[redacted]"))[0] == 1  # the sentence still says which task it is
    assert verified((("finding", "rollout_id"), "[redacted]"))[0] == 1
    assert verified((("evidence", "action"), "close [redacted]"))[0] == 1


@pytest.mark.parametrize("name", ["chance", "certainty"])
@pytest.mark.parametrize("way", ["delete", "null", "empty"])
def test_what_was_taken_off_a_card_is_named(card: Path, capsys: pytest.CaptureFixture[str], name: str, way: str) -> None:
    data = json.loads(card.read_text())
    data[name] = {} if way == "empty" else None
    if way == "delete":
        del data[name]
    card.write_text(json.dumps(data))
    status, out, err = run(capsys, "verify", str(card))
    assert status == 1
    assert name in out + err
    assert not out.startswith("reproduced")


@pytest.mark.parametrize(
    ("keys", "to", "named"),
    [
        (("tool",), "other-lab", "tool is 'other-lab', expected 'graft-lab'"),
        (("made",), "2999-01-01", "made is 2999-01-01, which is still to come"),
        (("made",), "yesterday", "made is 'yesterday', expected a date"),
        (("made",), None, "made is missing, expected a date"),
        (("redacted",), "no", "redacted is 'no', expected true or false"),
        (("version",), ["x"], "version is a list, expected a version"),
        (("version",), "latest", "version is 'latest', expected a version"),
        (("remark",), "This proves it.", "remark is no field of a card"),
        (("fingerprint", 0, "note"), "cheated", "fingerprint[0].note is no field of a card"),
        (("numbers", "votes"), 7, "numbers.votes is undefined, the card says 7"),
        (("chance",), {"left_out": True, "p": 0.001}, "chance is an object, expected"),
        (("fingerprint", 1, "id"), "r1", "fingerprint[1].id is 'r2', the card says 'r1'"),
        (("fingerprint", 1, "texts"), None, "fingerprint[1].texts is undefined"),
    ],
)
def test_who_made_a_card_and_what_else_stands_on_it_is_checked(
    card: Path, capsys: pytest.CaptureFixture[str], keys: tuple[Any, ...], to: Any, named: str
) -> None:
    falsified(card, capsys, keys, to, named)


@pytest.mark.parametrize(
    ("keys", "to", "named"),
    [
        (("finding", "row"), ..., "finding.row is missing"),
        (("finding",), {}, "finding.row is missing"),
        (("finding", "row"), "first", "finding.row is 'first', expected a whole number"),
        (("finding", "row"), 10**30, "finding.row is 1e+30, expected a whole number"),
        (("data", "files"), ["x"], "data.files[0] is 'x', expected an object"),
        (("data", "files"), [], "data.files is an empty list"),
        (("data", "sha256"), ..., "data.sha256 is missing"),
        (("fingerprint",), [1], "fingerprint[0] is 1, expected an object"),
        (("fingerprint", 0, "steps"), ..., "fingerprint[0].steps is missing"),
        (("settings", "rules"), [], "settings.rules is an empty list"),
        (("settings", "rules"), "exact", "settings.rules is 'exact', expected a list"),
        (("chance", "shuffles"), "many", "chance.shuffles is 'many', expected a whole number"),
        (("moment", "actions"), None, "moment.actions is undefined, expected a list"),
    ],
)
def test_a_broken_card_is_one_sentence_that_names_the_field(
    card: Path, capsys: pytest.CaptureFixture[str], keys: tuple[Any, ...], to: Any, named: str
) -> None:
    change_card(card, *keys, to=None if to is ... else to)
    if to is ...:
        data = at = json.loads(card.read_text())
        for key in keys[:-1]:
            at = at[key]
        del at[keys[-1]]
        card.write_text(json.dumps(data))
    status, out, err = run(capsys, "verify", str(card))
    assert (status, out) == (1, "")
    assert named in err
    assert err.count("\n") == 1
    assert "Error" not in err


def test_a_task_called_after_its_file_has_that_name_in_the_sentence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    batch = gc.load(place / "household.jsonl", group_by="file")
    words = ["card", str(place / "household.jsonl"), "--group-by", "file", "--task", "household", "--no-chance", "--rollout"]
    out = run(capsys, *words, batch.rollout_ids[3], "--step", "2", "-o", str(place))[1]
    card = Path(out.splitlines()[0])
    renamed = str(shutil.move(place / "household.jsonl", place / "renamed.jsonl"))
    assert run(capsys, "verify", str(card), renamed)[:2] == (0, "reproduced\n")
    change_card(card, "claim", "sentence", to="Anything at all.")
    assert run(capsys, "verify", str(card), renamed)[0] == 1
