"""Colours of the pictures: node fill by value, edge ink by credit; every picture sends palette numbers only.

Values use cividis (Nunez, Anderton and Renslow 2018, "Optimizing colormaps with consideration for color vision
deficiency"), credit a diverging scale from vermilion over grey to blue (the first and last from Okabe and Ito's
colour-blind safe set). Every edge ink keeps a contrast of at least 2.9 to its background.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graft_core.constants import SIGN_TOLERANCE

Rgb = tuple[float, float, float]

VERMILION: Final = "#D55E00"
GREY: Final = "#969696"
BLUE: Final = "#0072B2"
PAGE: Final = {"light": "#FFFFFF", "dark": "#0E1117"}
"""Page colours that the inks are checked against."""

CIVIDIS_ANCHORS: Final = (
    "#00224E", "#123570", "#3B496C", "#575D6D", "#707173",
    "#8A8678", "#A59C74", "#C3B369", "#E1CC55", "#FEE838",
)  # fmt: skip
VALUE_STEPS: Final = 48
NO_VALUE: Final = VALUE_STEPS
"""Palette number of a node without a value (drawn empty, hatched)."""

CREDIT_STEPS: Final = 20
NO_CREDIT: Final = 2 * CREDIT_STEPS + 1
"""Palette number of an edge whose credit is undefined (dotted); 0..19 negative, 20 zero, 21..40 positive."""

LEAST_CONTRAST: Final = 2.9
FAINT_CONTRAST: Final = 3.3
"""Faint inks stop here on their way to the page; an ink that is below from the start stays as it is."""


def hex_to_rgb(colour: str) -> Rgb:
    """Red, green and blue in 0..1 of a colour written #RRGGBB."""
    if len(colour) != 7 or not colour.startswith("#"):
        raise ValueError(f"colour {colour!r} is not written #RRGGBB")
    return int(colour[1:3], 16) / 255, int(colour[3:5], 16) / 255, int(colour[5:7], 16) / 255


def rgb_to_hex(rgb: Sequence[float]) -> str:
    return "#" + "".join(f"{round(min(max(part, 0.0), 1.0) * 255):02X}" for part in rgb)


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2, relative luminance)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def mix(one: str, other: str, share: float) -> str:
    """Colour that is `share` (0..1) of the way from `one` to `other`, channel by channel."""
    pairs = zip(hex_to_rgb(one), hex_to_rgb(other), strict=True)
    return rgb_to_hex([a + (b - a) * share for a, b in pairs])


@lru_cache(maxsize=1)
def value_colours() -> tuple[str, ...]:
    """`VALUE_STEPS` fills from low to high value."""
    last = len(CIVIDIS_ANCHORS) - 1
    fills = []
    for step in range(VALUE_STEPS):
        at = step / (VALUE_STEPS - 1) * last
        low = min(int(at), last - 1)
        fills.append(mix(CIVIDIS_ANCHORS[low], CIVIDIS_ANCHORS[low + 1], at - low))
    return tuple(fills)


@lru_cache(maxsize=4)
def credit_colours(theme: str, faint: bool = False) -> tuple[str, ...]:
    """Edge inks by palette number (2 * CREDIT_STEPS + 2 of them) for the theme "light" or "dark".

    `faint` is for thin support: the same inks moved towards the page, as far as the contrast allows.
    """
    page = PAGE[theme]
    negative = [_ink(VERMILION, (CREDIT_STEPS - step) / CREDIT_STEPS) for step in range(CREDIT_STEPS)]
    positive = [_ink(BLUE, (step + 1) / CREDIT_STEPS) for step in range(CREDIT_STEPS)]
    inks = [*negative, GREY, *positive, GREY]
    wanted = [mix(ink, page, 0.35) if faint else ink for ink in inks]
    return tuple(_legible(want, ink, page) for want, ink in zip(wanted, inks, strict=True))


def value_numbers(values: ArrayLike, limits: tuple[float, float] = (0.0, 1.0)) -> NDArray[np.int64]:
    """Palette number of each value; values outside the limits take the end colour, NaN is `NO_VALUE`."""
    low, high = limits
    if not high > low:
        raise ValueError(f"value limits {limits} are not ascending")
    v = np.asarray(values, dtype=np.float64)
    at = np.clip((v - low) / (high - low), 0.0, 1.0)
    numbers = np.rint(np.nan_to_num(at) * (VALUE_STEPS - 1)).astype(np.int64)
    return np.where(np.isnan(v), NO_VALUE, numbers)


def credit_numbers(credit: ArrayLike, limit: float) -> NDArray[np.int64]:
    """Palette number of each credit on a scale symmetric about 0; beyond +-limit the end colour.

    Credit within the sign tolerance of 0 is grey, anything beyond it takes at least the first tinted step, so
    that the sign shown is the sign counted. NaN is `NO_CREDIT`.
    """
    if not limit > 0:
        raise ValueError(f"credit limit {limit} is not positive")
    a = np.asarray(credit, dtype=np.float64)
    size = np.ceil(np.clip(np.nan_to_num(np.abs(a)) / limit, 0.0, 1.0) * CREDIT_STEPS).astype(np.int64)
    sign = np.where(np.abs(a) > SIGN_TOLERANCE, np.sign(np.nan_to_num(a)), 0.0).astype(np.int64)
    return np.where(np.isnan(a), NO_CREDIT, CREDIT_STEPS + sign * np.maximum(size, 1))


def credit_limit(*panels: ArrayLike, share: float = 0.95) -> float:
    """Common limit of one or more pictures: the given share of |credit|, leaving out zero and undefined.

    1.0 where nothing is left. Credits of different units (normalised against raw) need a limit each.
    """
    sizes = np.abs(np.concatenate([np.zeros(0), *(np.asarray(panel, dtype=np.float64).ravel() for panel in panels)]))
    sizes = sizes[np.isfinite(sizes) & (sizes > SIGN_TOLERANCE)]
    return float(np.quantile(sizes, share)) if sizes.size else 1.0


def _ink(end: str, strength: float) -> str:
    # The first step is already visibly tinted: a small credit must not pass for none.
    return mix(GREY, end, 0.25 + 0.75 * strength)


def _legible(wanted: str, full: str, page: str) -> str:
    """`wanted`, moved back towards `full` until it stands out from the page; `full` at the latest."""
    if contrast(full, page) < LEAST_CONTRAST:
        raise ValueError(f"colour {full} has a contrast of {contrast(full, page):.2f} on {page}; 2.9 is needed")
    steps = (mix(wanted, full, float(share)) for share in np.linspace(0.0, 1.0, 21))
    return next((ink for ink in steps if contrast(ink, page) >= FAINT_CONTRAST), full)


def _luminance(colour: str) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in hex_to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
