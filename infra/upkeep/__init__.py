"""Looks after a storage root: shows what is in it, collects garbage, verifies checksums."""

from __future__ import annotations
