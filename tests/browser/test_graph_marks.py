"""What is set off in the picture, and pictures that belong together: paths, rings, keys, links, names."""

from __future__ import annotations

import pytest
from graph_hands import Draw, ask, click, zoom_in
from playwright.sync_api import Page, expect


def test_the_paths_of_two_rollouts_are_set_off(page: Page, draw: Draw) -> None:
    draw("n=60")
    assert ask(page, "paths") == []
    draw("n=60&rollout=2&rollout=5")
    one, other = ask(page, "paths")
    assert len(one) >= 5 and len(other) >= 5 and one != other
    for name in ("r2", "r5"):
        expect(page.locator(".graft-legend").get_by_text(name, exact=True)).to_be_visible()


def test_right_and_left_follow_the_rollout_that_is_set_off(page: Page, draw: Draw) -> None:
    draw("n=60&rollout=2")
    (path,) = ask(page, "paths")
    picture = page.get_by_role("application")
    picture.focus()
    picture.press("Home")
    ends = [ask(page, "ends", edge) for edge in path]
    walked = []
    for _ in path:
        picture.press("ArrowRight")
        walked.append(ask(page, "current")["id"])
    assert walked == [to for _, to in ends]  # also where it comes back to a moment and leaves it otherwise
    picture.press("ArrowLeft")
    assert ask(page, "current")["id"] == ends[-1][0]


def test_question_mark_lists_the_keys_and_escape_closes_the_list(page: Page, draw: Draw) -> None:
    draw("n=12")
    picture = page.get_by_role("application")
    click(page, "node", 2)
    help_box = page.locator(".graft-help")
    expect(help_box).to_be_hidden()
    picture.press("?")
    expect(help_box).to_be_visible()
    expect(help_box.get_by_text("flip credit A and B")).to_be_visible()
    picture.press("Escape")
    expect(help_box).to_be_hidden()
    assert ask(page, "current") == {"kind": "node", "id": 2}  # the first Escape only closed the list


def test_what_was_found_is_ringed(page: Page, draw: Draw) -> None:
    draw("n=12&found=3&found=5")
    assert ask(page, "found") == [3, 5]
    expect(page.get_by_text("matches the search")).to_be_visible()


def test_linked_panels_move_and_choose_together(page: Page, draw: Draw) -> None:
    draw("n=60&panels=2&link=1&height=360")
    zoom_in(page, 12, times=3)
    views = [ask(page, "view", picture=k) for k in (0, 1)]
    assert views[0]["scale"] == pytest.approx(views[1]["scale"])
    assert views[0]["position"]["x"] == pytest.approx(views[1]["position"]["x"], abs=0.5)
    click(page, "node", 12)
    assert ask(page, "current", picture=1) == {"kind": "node", "id": 12}
    page.get_by_role("application").first.press("0")
    page.wait_for_function(
        """old => { const [one, other] = window.pictures.map((each) => each.graftGraph.view().scale);
                    return Math.abs(one - other) < 1e-6 && one < old; }""",
        arg=views[0]["scale"],
    )


def test_a_moment_that_is_drawn_often_is_chosen_where_it_was_clicked(page: Page, draw: Draw) -> None:
    draw("n=30&shape=lanes&max=60")
    click(page, "node", 4)
    page.wait_for_function("() => window.pictures[0].graftGraph.current()?.id === 4")


def test_labels_are_not_cut_off_by_the_frame(page: Page, draw: Draw) -> None:
    page.set_viewport_size({"width": 700, "height": 760})
    draw("n=12")
    width = page.evaluate("() => window.pictures[0].clientWidth")
    boxes = ask(page, "labels")
    assert len(boxes) >= 5
    assert min(box["left"] for box in boxes) >= 0 and max(box["right"] for box in boxes) <= width
