"""What a run keeps in storage besides its data: pointers, marks, parameters and logs."""

from __future__ import annotations
