"""How long and how deep planning may go: a deadline that every walk checks, and a large stack."""

from __future__ import annotations
