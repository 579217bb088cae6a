"""Looking after a storage root: in, a store; out, what lies in it, and what gc has removed."""

from __future__ import annotations
