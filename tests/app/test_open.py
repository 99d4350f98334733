"""The Open page: what is in a file before it is used, the choices of task and success, and what the address holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import graft_core as gc
from graft_app import cache, server
from graft_app.views.opening import said, sizes_words
from graft_core.insight.cards import make_card, read_card, verify_card
from graft_core.insight.findings import findings
from graft_core.sizes import size_words

Open = Callable[..., AppTest]
HOSTILE = "<img src=x onerror=alert(1)> ![x](http://evil.example/x.png) :red[no] $x$ `code`"


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> Open:
    """`visit([path], page="open", look="r0:a.jsonl")` runs a page on paths with an address."""

    def go(paths: list[Path] | None = None, page: str = "open", **address: str) -> AppTest:
        monkeypatch.setenv(server.PATHS_VARIABLE, json.dumps([str(p) for p in paths or []]))
        test = AppTest.from_file(str(server.MAIN), default_timeout=60)
        for name, word in address.items():
            test.query_params[name] = word
        test.run()
        if page != "findings":
            test.switch_page(f"screens/{page}.py").run()
        assert not test.exception, test.exception
        return test

    return go


def words(test: AppTest) -> str:
    kinds = ("markdown", "caption", "warning", "error", "info", "text", "code")
    return "\n".join(str(element.value) for kind in kinds for element in test.get(kind))


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scored(path: Path) -> Path:
    """Four rollouts of two tasks, with scores from 0 to 1 and a metadata key; the file names no task."""
    rows = [
        {
            "rollout_id": f"r{i}", "step": t, "observation": f"room {t}", "action": f"go {i % 2}", "outcome": i / 4,
            "metadata": {"user_id": f"u{i % 2}", "quality": i * 10},
        }
        for i in range(4) for t in range(2)
    ]  # fmt: skip
    return write(path, rows)


def button(test: AppTest, label: str) -> None:
    next(b for b in test.button if b.label.startswith(label)).click().run()
    assert not test.exception, test.exception


def test_it_starts_with_what_is_on_the_table(visit: Open) -> None:
    said_words = words(visit())
    assert "household\\.jsonl" in said_words
    assert "**canonical**" in said_words
    assert "8 tasks × 8 rollouts · 1,027 steps · 26 succeeded, 38 failed · 6 tasks with both outcomes" in said_words
    assert "Rollout r1 of task cool apple · 11 steps" in said_words
    assert "1,027 records read" in said_words


def test_a_file_is_found_by_clicking_looked_at_and_used(visit: Open, tmp_path: Path, vectors: Path) -> None:
    folder = tmp_path / "runs" / "first"
    folder.mkdir(parents=True)
    (folder / "hand.jsonl").write_bytes((vectors / "hand.jsonl").read_bytes())
    (folder / "notes.txt").write_text("no rollouts")
    test = visit([vectors / "mixed.jsonl", tmp_path])
    button(test, "runs")
    button(test, "first")
    size = size_words((folder / "hand.jsonl").stat().st_size)
    assert [b.label for b in test.button if "jsonl" in b.label] == [f"hand\\.jsonl :gray[{size}]"]
    button(test, "hand")
    assert test.query_params["look"] == "r1:runs/first/hand.jsonl"
    assert "1 task × 4 rollouts" in words(test)
    button(test, "Use this batch")
    assert test.query_params["file"] == "r1:runs/first/hand.jsonl"
    assert "look" not in test.query_params
    assert list(test.dataframe[0].value["step"]) == ["r1/0"]
    again = visit([vectors / "mixed.jsonl", tmp_path], "findings", file="r1:runs/first/hand.jsonl")
    assert list(again.dataframe[0].value["step"]) == ["r1/0"]
    assert again.selectbox(key="url_file").value == 2
    again.selectbox(key="url_file").set_value(0).run()
    assert "file" not in again.query_params
    assert not again.exception


def test_a_file_without_rollouts_is_a_sentence_and_the_browser_stays(visit: Open, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no rollouts")
    scored(tmp_path / "ok.jsonl")
    test = visit([tmp_path], look="r0:notes.txt")
    assert "no known format" in test.error[0].value
    assert str(tmp_path) not in test.error[0].value
    assert any(b.label.startswith("ok") for b in test.button)


@pytest.mark.parametrize("word", ["r0:../x.jsonl", "r0:/etc/passwd", "r7:x", "u1", "999", "r0:![x](http://evil.example/y.png)"])
@pytest.mark.parametrize("name", ["look", "file"])
def test_a_wrong_word_in_the_address_is_a_message(visit: Open, tmp_path: Path, word: str, name: str) -> None:
    scored(tmp_path / "a.jsonl")
    test = visit([tmp_path / "a.jsonl"], **{name: word})
    assert test.warning
    assert "evil" not in words(test)
    assert "root:" not in words(test)


def test_a_typed_path_is_taken_or_refused(visit: Open, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    scored(tmp_path / "in" / "a.jsonl")
    scored(tmp_path / "out.jsonl")
    test = visit([tmp_path / "in"])
    test.text_input(key="typed_path").set_value("../out.jsonl").run()
    assert "not under a folder" in test.error[0].value
    test.text_input(key="typed_path").set_value(str(tmp_path / "in" / "a.jsonl")).run()
    assert test.query_params["look"] == "r0:a.jsonl"
    assert not test.error


def test_the_report_names_place_and_reason(visit: Open, tmp_path: Path) -> None:
    path = scored(tmp_path / "a.jsonl")
    path.write_text(path.read_text() + '{"rollout_id": "x", "step": 0, "action": \n')
    test = visit([tmp_path], look="r0:a.jsonl")
    table = test.dataframe[0].value
    assert table["where"].tolist() == ["a.jsonl:9"]
    assert "JSON" in table["why"][0]
    assert "**9 records read** · 8 accepted · 1 rejected" in words(test)


def test_groupings_are_offered_with_their_sizes_and_used(visit: Open, tmp_path: Path) -> None:
    scored(tmp_path / "a.jsonl")
    test = visit([tmp_path], look="r0:a.jsonl")
    assert "tasks are only assumed" in words(test)
    menu = test.radio(key="grouping_r0:a.jsonl")
    assert menu.value is None
    assert any("user\\_id · 2 tasks × 2 rollouts" in option for option in menu.options)
    menu.set_value("column:user_id").run()
    assert "2 tasks × 2 rollouts" in words(test)
    assert "only assumed" not in words(test)
    button(test, "Use this batch")
    assert test.query_params["group_by"] == "column:user_id"
    assert "2 tasks · 4 rollouts" in words(test)


def test_another_grouping_is_typed_and_a_wrong_one_is_a_sentence(visit: Open, tmp_path: Path) -> None:
    scored(tmp_path / "a.jsonl")
    test = visit([tmp_path], look="r0:a.jsonl")
    test.radio(key="grouping_r0:a.jsonl").set_value("other").run()
    test.text_input(key="grouping_word_r0:a.jsonl").set_value("regex:(").run()
    assert "no regular expression" in test.error[0].value
    assert next(b for b in test.button if b.label == "Use this batch").disabled
    test.text_input(key="grouping_word_r0:a.jsonl").set_value("column:user_id").run()
    assert not test.error
    assert "2 tasks × 2 rollouts" in words(test)


def test_a_success_rule_is_previewed_and_used(visit: Open, tmp_path: Path) -> None:
    scored(tmp_path / "a.jsonl")
    test = visit([tmp_path], look="r0:a.jsonl")
    assert "0 succeeded, 4 failed" in words(test)
    test.radio(key="success_r0:a.jsonl").set_value("other").run()
    test.selectbox(key="success_name_r0:a.jsonl").set_value("quality").run()
    test.number_input(key="success_number_r0:a.jsonl").set_value(20.0).run()
    assert "from 0.00 to 30.00" in words(test)
    assert "2 succeeded, 2 failed" in words(test)
    test.radio(key="grouping_r0:a.jsonl").set_value("column:user_id").run()
    assert "2 succeeded, 2 failed · 2 tasks with both outcomes" in words(test)
    button(test, "Use this batch")
    assert test.query_params["success_when"] == "quality >= 20.0"
    assert "2 succeeded" in words(test)
    button(test, "success")
    assert "success_when" not in test.query_params
    assert "0 succeeded" in words(test)


@pytest.mark.parametrize("word", ["![x](http://evil.example/x.png)", "nope > 1", "outcome >= x"])
def test_a_wrong_rule_in_the_address_is_a_sentence(visit: Open, word: str) -> None:
    test = visit(page="findings", success_when=word)
    shown = [*test.warning, *test.error]
    assert any("rule" in e.value or "no value" in e.value for e in shown)
    assert not any("![" in e.value for e in shown)


def test_an_upload_is_opened_and_the_address_cannot_bring_it_back(visit: Open, tmp_path: Path, vectors: Path) -> None:
    data = (vectors / "hand.jsonl").read_bytes()
    test = visit()
    test.file_uploader(key="uploads").set_value([("../../hand.jsonl", data, "application/json")]).run()
    assert test.query_params["look"] == "u1"
    assert "address cannot bring it back" in words(test)
    assert "1 task × 4 rollouts" in words(test)
    button(test, "Use this batch")
    assert test.query_params["file"] == "u1"
    assert list(test.dataframe[0].value["step"]) == ["r1/0"]
    fresh = visit(page="findings", file="u1")
    assert "as long as the visit" in fresh.warning[0].value
    assert "8 tasks · 64 rollouts" in words(fresh)


def test_hostile_text_stays_text(visit: Open, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "rollout_id": HOSTILE,
            "step": 0,
            "observation": HOSTILE,
            "action": HOSTILE,
            "outcome": i,
            "metadata": {HOSTILE: HOSTILE},
        }
        for i in (0, 1)
    ]
    name = "![x](http-evil.example).jsonl"
    write(tmp_path / name, rows[:1]).write_text(json.dumps(rows[0]) + "\n" + json.dumps({**rows[1], "rollout_id": "b"}) + "\n")
    test = visit([tmp_path], look=f"r0:{name}")
    for element in [*test.markdown, *test.caption, *test.warning, *test.error]:
        assert "![" not in element.value
        assert "<img" not in element.value.replace("\\<img", "")
        assert not getattr(element, "allow_html", False)
    labels = [b.label for b in test.button] + [o for r in test.radio for o in r.options]
    assert not any("![" in label for label in labels)


def test_the_findings_page_offers_groupings_with_sizes(visit: Open, test_data: Path) -> None:
    test = visit([test_data / "verl_agent_webshop"], "findings")
    menu = test.radio(key="grouping_table None")
    assert any("the same file · 4 tasks × 32 rollouts" in option for option in menu.options)
    menu.set_value("file").run()
    assert test.query_params["group_by"] == "file"
    assert test.dataframe
    button(test, "Take the grouping back")
    assert "group_by" not in test.query_params
    assert not test.dataframe


def test_regrouping_the_cached_batch_is_loading_with_that_grouping(test_data: Path) -> None:
    path = str(test_data / "verl_agent_webshop")
    for group_by, rule in (("file", "reward >= 0.5"), ("column:observation", None), (None, "outcome > 0")):
        batch, report = cache.batch_of(path, cache.stamp(path), group_by, rule)
        direct, expected = gc.load(path, group_by=group_by, report=True, success_when=rule)
        assert report == expected
        for table in ("rollouts", "steps", "texts"):
            assert getattr(batch, table).equals(getattr(direct, table))


def test_a_card_made_under_a_rule_is_verified_under_it(tmp_path: Path) -> None:
    path = scored(tmp_path / "a.jsonl")
    rule = "quality >= 12.3456789"
    batch, report = gc.load(path, group_by="file", report=True, success_when=rule)
    card = make_card(findings(batch), 0, report.files, group_by="file")
    assert card.data["data"]["success_when"] == rule
    assert "succeeded when | quality" in card.markdown()
    file = card.write(tmp_path)[0]
    assert verify_card(read_card(file), [tmp_path]).ok
    changed = json.loads(file.read_text())
    changed["data"]["success_when"] = None
    file.write_text(json.dumps(changed))
    assert not verify_card(read_card(file), [tmp_path]).ok
    changed["data"]["success_when"] = 7
    file.write_text(json.dumps(changed))
    with pytest.raises(gc.errors.InputError):
        verify_card(read_card(file), [tmp_path])


def test_sizes_in_words() -> None:
    assert [size_words(n) for n in (0, 999, 1500, 569_000, 2_750_000_000)] == [
        "0 bytes",
        "999 bytes",
        "1.5 kB",
        "569 kB",
        "2.8 GB",
    ]
    assert sizes_words({8: 8}) == "8 tasks × 8 rollouts"
    assert sizes_words({16: 1, 8: 6}) == "7 tasks of 8 to 16 rollouts (6 × 8, 1 × 16)"


def test_an_error_is_one_line_without_markup() -> None:
    assert said("a\n![x](http://y)") == "a \\!\\[x\\]\\(h\u2060ttp\\://y\\)"


def test_how_far_a_large_file_was_read_is_told(tmp_path: Path) -> None:
    line = json.dumps({"group_id": "g", "rollout_id": "r", "step": None, "outcome": 1.0, "metadata": {"x": "y" * 1000}})
    for name in "ab":
        rows = (line.replace('"r"', f'"{name}{i}"') for i in range(1500))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    told: list[tuple[int, int]] = []
    gc.load(tmp_path, progress=lambda done, of: told.append((done, of)))
    assert {of for _, of in told} == {total}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[0][0] == 0
    assert told[-1][0] == total
    assert len(told) >= 5
    path = str(tmp_path / "a.jsonl")
    first, second = ([], [])  # type: tuple[list[int], list[int]]
    batch, _ = cache.read_once(path, cache.stamp(path), lambda done, _: first.append(done))
    again, _ = cache.read_once(path, cache.stamp(path), lambda done, _: second.append(done))
    assert first
    assert not second
    assert again is batch


def test_chance_that_was_dealt_with_a_bar_is_taken_from_the_cache(visit: Open) -> None:
    test = visit(page="findings", a="path_gae")
    next(b for b in test.button if b.label.startswith("Is this more")).click().run()
    assert not test.exception
    test.text_input(key="url_q").set_value("apple").run()
    assert not test.exception
