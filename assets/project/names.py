"""Checks names that users write, and suggests the name that was probably meant."""

import difflib
import keyword
import re
from collections.abc import Iterable

JOB_PREFIX = "run_"
MAX_NAME_LENGTH = 100
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# Names that Dagster refuses for an op (`dagster._core.definitions.utils.DISALLOWED_NAMES`).
_RESERVED = frozenset(
    {"context", "conf", "config", "meta", "arg_dict", "dict", "input_arg_dict", "output_arg_dict"}
    | {"int", "str", "float", "bool", "input", "output", "type"}
)


def name_problem(name: str) -> str | None:
    """Why `name` cannot be that of a query, or None where it can."""
    advice = "use letters, digits and single underscores, a letter first"
    if not _NAME.fullmatch(name):
        return f"'{name}' cannot be the name of an asset; {advice}"
    if "__" in name:
        return f"'{name}' contains '__', which Dagster puts between a query and its stage; {advice}"
    if name in _RESERVED or keyword.iskeyword(name):
        return f"'{name}' is a reserved word in Dagster; choose another name"
    if len(name) > MAX_NAME_LENGTH:
        return f"'{name}' has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed"
    return None


def stage_path(query: str, stage_id: int | None) -> tuple[str, ...]:
    """The parts of the asset key of a stage; that of the head, which is given as None, is short.

    Never a hash: the history of the asset would go.
    """
    return (query,) if stage_id is None else (query, f"stage_{stage_id}")


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that was meant, whatever its case, or None."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str], *, what: str = "there are") -> str:
    """What follows a message about an unknown word: the likely one, or all there are."""
    names = list(known)
    if (name := closest(word, names)) is not None:
        return f"; did you mean '{name}'?"
    return f"; {what}: {', '.join(names) or 'none'}"
