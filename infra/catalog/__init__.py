"""Tables by name: the catalog file, and the tables that queries make."""

from __future__ import annotations
