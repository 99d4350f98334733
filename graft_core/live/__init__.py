"""Live: small policies that play text environments, are trained with a credit estimator, and test a credit by rollout.

Nothing here imports torch until a language model is asked for; tabular policies need numpy only.
"""

from __future__ import annotations
