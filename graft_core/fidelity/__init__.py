"""How right a credit is: true values from known dynamics. Importing this needs numpy only."""

from __future__ import annotations
