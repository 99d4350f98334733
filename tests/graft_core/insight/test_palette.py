"""Colours: order, symmetry, the sign that is counted is the sign that is shown, and contrast."""

from __future__ import annotations

import numpy as np
import pytest

from graft_core.insight import palette
from graft_core.insight.palette import (
    CREDIT_STEPS,
    NO_CREDIT,
    NO_VALUE,
    contrast,
    credit_colours,
    credit_limit,
    credit_numbers,
    mix,
    value_colours,
    value_numbers,
)


def test_contrast_of_known_pairs() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)  # the usual textbook example
    assert contrast("#969696", "#FFFFFF") == pytest.approx(2.96, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("faint", [False, True])
def test_every_ink_stands_out(theme: str, faint: bool) -> None:
    inks = credit_colours(theme, faint)
    assert len(inks) == NO_CREDIT + 1
    assert min(contrast(ink, palette.PAGE[theme]) for ink in inks) >= 2.9


def test_the_ends_and_the_middle_are_the_named_colours() -> None:
    inks = credit_colours("light")
    assert (inks[0], inks[CREDIT_STEPS], inks[2 * CREDIT_STEPS]) == ("#D55E00", "#969696", "#0072B2")
    assert inks == credit_colours("dark")
    assert len(set(inks[:NO_CREDIT])) == NO_CREDIT


def test_faint_inks_are_nearer_to_the_page() -> None:
    for theme, page in palette.PAGE.items():
        firm, faint = credit_colours(theme), credit_colours(theme, faint=True)
        assert contrast(faint[0], page) < contrast(firm[0], page)
        assert contrast(faint[-2], page) < contrast(firm[-2], page)


def test_credit_is_symmetric_about_zero() -> None:
    sizes = np.linspace(1e-8, 1.5, 200)
    middle = CREDIT_STEPS
    assert np.array_equal(credit_numbers(sizes, 1.0) - middle, middle - credit_numbers(-sizes, 1.0))


def test_the_sign_shown_is_the_sign_counted() -> None:
    numbers = credit_numbers([-2e-9, -0.5e-9, 0.0, 0.5e-9, 2e-9, np.nan], 1.0)
    assert numbers.tolist() == [19, 20, 20, 20, 21, NO_CREDIT]


def test_credit_beyond_the_limit_takes_the_end_colour() -> None:
    assert credit_numbers([-9, -1, 1, 9, np.inf], 1.0).tolist() == [0, 0, 40, 40, 40]
    assert credit_numbers([0.5, -0.5], 1.0).tolist() == [30, 10]
    with pytest.raises(ValueError, match="not positive"):
        credit_numbers([1.0], 0.0)


def test_values_run_over_the_limits() -> None:
    assert value_numbers([0, 1, -3, 7, np.nan]).tolist() == [0, 47, 0, 47, NO_VALUE]
    assert value_numbers([10, 20, 15], (10, 20)).tolist() == [0, 47, 24]
    with pytest.raises(ValueError, match="not ascending"):
        value_numbers([1.0], (1.0, 1.0))


def test_cividis_grows_lighter() -> None:
    black = [contrast(fill, "#000000") for fill in value_colours()]
    assert value_colours()[0] == "#00224E" and value_colours()[-1] == "#FEE838"
    assert np.all(np.diff(black) >= 0)


def test_the_limit_covers_most_credit_of_all_panels() -> None:
    assert credit_limit(np.arange(1, 101), -np.arange(1, 101)) == pytest.approx(
        np.quantile(np.repeat(np.arange(1, 101), 2), 0.95)
    )
    assert credit_limit([0.0, np.nan, 1e-12]) == 1.0
    assert credit_limit() == 1.0


def test_colours_are_checked() -> None:
    assert mix("#000000", "#FFFFFF", 0.5) == "#808080"
    with pytest.raises(ValueError, match="#RRGGBB"):
        mix("red", "#FFFFFF", 0.5)
