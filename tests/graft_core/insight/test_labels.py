"""Labels and tooltips from text that is long, alike or hostile."""

from __future__ import annotations

import unicodedata

from graft_core.insight.labels import labels, plain, shorten, tooltip


def test_beginnings_that_most_texts_share_are_left_out() -> None:
    rooms = ["hall", "kitchen", "cellar", "attic", "garden"]
    assert labels([f"You are in the {room}. You see a mug." for room in rooms]) == rooms


def test_a_shared_beginning_is_joined_by_what_is_rare() -> None:
    hall = [f"You are in the hall. You carry {thing}. The door is open." for thing in ("a mug", "a key", "nothing")]
    attic = ["You are in the attic. You carry nothing. The door is open.", "You are in the attic. It rains."]
    found = labels(hall + attic)
    assert found[:2] == ["hall · a mug", "hall · a key"]
    assert len(set(found)) == 5


def test_members_of_an_object_count_as_clauses() -> None:
    texts = [f'{{"id": "R{k}", "user": "ann", "from": "{city}"}}' for k, city in enumerate(["OSL", "JFK", "MCO", "OSL"])]
    assert labels(texts) == ['"R0"', '"R1"', '"R2"', '"R3"']


def test_a_text_without_words_of_its_own_keeps_its_beginning() -> None:
    texts = ["the end", "the end. so", "the end. yes", "the end. no", "the end. oh"]
    assert labels(texts) == ["the end", "so", "yes", "no", "oh"]


def test_pages_that_begin_alike_are_told_apart() -> None:
    things = ["red shirt", "blue shirt", "green coat", "black hat", "old boots"]
    pages = [f"'Back to Search' [SEP] 'Page 1 (Total results: 50)' [SEP] 'B1' [SEP] '{thing}'" for thing in things]
    assert labels(pages) == [f"'{thing}'" for thing in things]


def test_few_texts_are_not_compared() -> None:
    assert labels(["the red door", "the blue door"]) == ["the red door", "the blue door"]


def test_repeats_do_not_make_words_common() -> None:
    assert labels(["the hall"] * 50 + ["in a garden", "a cellar", "attic stairs"])[0] == "the hall"


def test_no_label_is_longer_than_24_characters() -> None:
    long = labels(["word " * 40, "x" * 100_000, "short", "", "one two three four five six"])
    assert all(len(label) <= 24 for label in long)
    assert long[3] == ""
    assert long[1] == "x" * 23 + "…"
    assert long[4].endswith("…") and long[4].startswith("one two three four")


def test_control_and_direction_characters_are_gone() -> None:
    nasty = "a\u202eb\u200b\u0007c\u2066d\x1b[31me\ufefff\ud800g\nh\ti"
    cleaned = plain(nasty)
    assert cleaned == "abcd[31mefg h i"
    assert not any(unicodedata.category(char).startswith("C") for char in labels([nasty])[0])


def test_tooltips_keep_lines_and_end_at_300_characters() -> None:
    assert tooltip("one\n\n  two\u202e\r\nthree ") == "one\ntwo\nthree"
    assert len(tooltip("x" * 5000)) == 300
    assert tooltip("<b>&amp;</b>") == "<b>&amp;</b>"  # text stays text; nothing is escaped twice


def test_shorten_cuts_at_a_word_where_that_costs_little() -> None:
    assert shorten("take the big red apple now", 18) == "take the big red…"
    assert shorten("a-very-long-single-word", 10) == "a-very-lo…"
    assert shorten("fits", 4) == "fits"
