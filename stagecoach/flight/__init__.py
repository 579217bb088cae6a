"""`stagecoach serve`: a Flight SQL server over a catalog and a storage root.

messages/      what goes over the wire
server.py      the calls of gRPC, each a few lines above
service.py     what they do
├ execution.py   statements: a bounded number at once, time limits, cancellation, progress
├ results.py     endpoints of a result, and its rows from committed map files
├ streams.py     open streams, each of one batch at a time
├ prepared.py    prepared statements; parameters.py: their values
└ metadata.py    tables, types and properties
tokens.py, auth.py, tickets.py   who may do what
holds.py       keeps what is read safe from gc
serving.py     the life of a server; allocators.py: its memory
"""

from __future__ import annotations
