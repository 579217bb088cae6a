"""Object storage behind one small protocol, and every path below the storage root."""

from __future__ import annotations
