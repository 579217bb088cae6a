"""Running one stage: in, a stage and the identity of its run; out, a committed manifest."""

from __future__ import annotations
