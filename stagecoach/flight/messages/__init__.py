"""The messages of Flight SQL, as far as the server reads and writes them.

They are made from the field numbers of the specification when the package is imported: the one
package with generated code for them is unmaintained.

    wire.py      the fields of each message, and the classes that are made from them
    commands.py  what clients ask for, as values with types; `decode_command` reads them
"""

from __future__ import annotations
