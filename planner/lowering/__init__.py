"""Turn the optimised logical plan into operators that name an algorithm."""

from __future__ import annotations
