"""Python's DB-API 2.0 (PEP 249) over a session.

    import stagecoach.dbapi

    with stagecoach.dbapi.connect("pipelines/catalog.yaml") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT n_name FROM nation WHERE n_regionkey = :region", {"region": 2})
        print(cursor.fetchall())

Queries only read, so there are no transactions. Fetching streams the result.
"""

from __future__ import annotations

from stagecoach.dbapi.connection import Connection as Connection
from stagecoach.dbapi.connection import connect as connect
from stagecoach.dbapi.cursor import Cursor as Cursor
from stagecoach.dbapi.exceptions import DatabaseError as DatabaseError
from stagecoach.dbapi.exceptions import DataError as DataError
from stagecoach.dbapi.exceptions import Error as Error
from stagecoach.dbapi.exceptions import IntegrityError as IntegrityError
from stagecoach.dbapi.exceptions import InterfaceError as InterfaceError
from stagecoach.dbapi.exceptions import InternalError as InternalError
from stagecoach.dbapi.exceptions import NotSupportedError as NotSupportedError
from stagecoach.dbapi.exceptions import OperationalError as OperationalError
from stagecoach.dbapi.exceptions import ProgrammingError as ProgrammingError
from stagecoach.dbapi.exceptions import Warning as Warning
from stagecoach.dbapi.types import BINARY as BINARY
from stagecoach.dbapi.types import DATETIME as DATETIME
from stagecoach.dbapi.types import NUMBER as NUMBER
from stagecoach.dbapi.types import ROWID as ROWID
from stagecoach.dbapi.types import STRING as STRING
from stagecoach.dbapi.types import Binary as Binary
from stagecoach.dbapi.types import Date as Date
from stagecoach.dbapi.types import DateFromTicks as DateFromTicks
from stagecoach.dbapi.types import Time as Time
from stagecoach.dbapi.types import TimeFromTicks as TimeFromTicks
from stagecoach.dbapi.types import Timestamp as Timestamp
from stagecoach.dbapi.types import TimestampFromTicks as TimestampFromTicks

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, but not connections."""
paramstyle = "named"
"""`:name` with a mapping; `?` with a sequence is taken, too."""
