"""A property that is computed once, without a lock while it is computed.

`functools.cached_property` in Python 3.11 holds one lock per property, for all instances, while it
computes a value. A thread that waits meanwhile, for a file or for a large stack
(`limits.deep_stack`), stops every other thread that asks any instance for the property, and never
ends if it waits for one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """As `functools.cached_property`, but threads that ask at the same time may compute each.

        All of them get the same value, that of the first to end. A property that overrides another
        one must not read that of the parent class: both have the same name.

        Args:
            compute: Computes the value from the instance; safe to call twice.
        """

        def __init__(self, compute: Any) -> None:
            self._compute = compute
            self._name = compute.__name__
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            # An instance's own attribute comes before this one, so it is not asked again.
            return vars(instance).setdefault(self._name, self._compute(instance))


__all__ = ["cached_property"]
