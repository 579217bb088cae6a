"""How moments, types and YAML are written, for all phases; nothing here knows of plans."""

from __future__ import annotations
