"""Lets pyspark pass values to Java without importing pandas.

pyspark asks two converters whether each argument of each call to Java is a numpy value. To find out
whether numpy is there, they import pyspark's test utilities, which import pandas: half a second
before the first session, and nothing here needs pandas.
"""

from __future__ import annotations

import sys
from typing import Any

from py4j.protocol import INPUT_CONVERTER
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter


class _ScalarConverter(NumpyScalarConverter):
    def can_convert(self, obj: Any) -> bool:
        # Unless numpy has been imported, no value can be one of its own.
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(obj, numpy.generic)


class _ArrayConverter(NumpyArrayConverter):
    def can_convert(self, obj: Any) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(obj, numpy.ndarray) and obj.ndim == 1


def use_light_converters() -> None:
    """Replace pyspark's two converters in this process; they convert as before."""
    lighter = {NumpyScalarConverter: _ScalarConverter, NumpyArrayConverter: _ArrayConverter}
    for place, converter in enumerate(INPUT_CONVERTER):
        if (better := lighter.get(type(converter))) is not None:
            INPUT_CONVERTER[place] = better()
