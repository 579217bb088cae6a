"""Cardinality estimates: how many rows and bytes an operator gives, from footer statistics.

In: logical plans and table statistics. Out: `Estimate` values, which choose between plans and never
decide whether one is right. Classical rules (Selinger et al., 1979); the distinct count of a column
is bounded by its value range and by the rows at hand.
"""

from __future__ import annotations

from planner.estimates.estimate import ColumnEstimate as ColumnEstimate
from planner.estimates.estimate import Estimate as Estimate
from planner.estimates.estimate import default_width as default_width
from planner.estimates.estimator import Estimator as Estimator
from planner.estimates.joins import joined as joined
from planner.estimates.joins import joined_rows as joined_rows
from planner.estimates.joins import match_shares as match_shares
