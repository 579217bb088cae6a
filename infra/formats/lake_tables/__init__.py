"""What formats share whose tables lie in a lake: results go there in place, in one commit.

writer ─▶ write_plan ─▶ tasks write data files ─▶ the format's own commit ─▶ publications
│                                                                            │
leftovers: a record of each commit under way                 a retry finds what it has published
"""

from __future__ import annotations
