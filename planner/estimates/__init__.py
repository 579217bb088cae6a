"""Estimate how many rows and bytes an operator produces, from footer statistics.

Estimates choose between plans; they never decide whether a plan is right. The rules are the
classical ones (Selinger et al., 1979). The distinct count of a column is bounded by its value range
and by the number of rows.
"""

from __future__ import annotations

from stagecoach.planner.estimates.estimate import ColumnEstimate as ColumnEstimate
from stagecoach.planner.estimates.estimate import Estimate as Estimate
from stagecoach.planner.estimates.estimate import default_width as default_width
from stagecoach.planner.estimates.estimator import Estimator as Estimator
from stagecoach.planner.estimates.joins import joined as joined
from stagecoach.planner.estimates.joins import joined_rows as joined_rows
from stagecoach.planner.estimates.joins import match_shares as match_shares
