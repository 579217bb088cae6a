"""A Spark to run on: in, engine settings; out, a session: of one started here, or of a server."""

from __future__ import annotations
