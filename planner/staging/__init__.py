"""Cut a plan at its exchanges into stages; choose the engine and title of each."""

from __future__ import annotations
