"""What all parts of a front matter have in common."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a front matter: it cannot change, and knows its keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, arbitrary_types_allowed=False
    )
