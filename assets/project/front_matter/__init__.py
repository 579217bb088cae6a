"""Front matter of a query file: what its author says about it, as YAML in the leading comment.

Parsing gives a `FrontMatter`, or reports every mistake with its line and column.

    /*                                                 -- description: Pricing summary
    description: Pricing summary                       -- owners: ["team:finance"]
    owners: ["team:finance", ada@example.com]          SELECT …
    tags: {domain: tpch}
    parameters:
      ship_date: 1998-09-02        # a default, whose type is the parameter's
      price: {type: "decimal(15,2)", default: 0.05}
      region: {type: string}       # no default: must be given
    */
    SELECT …

A line `---` may open and close it; then the comment must be front matter. Without it, a comment
none of whose keys is known is an ordinary comment.

`comment` finds it, `parse` reads it into the models of `model`, `parameters`, `partitions` and
`checks`, whose single values are in `values`; `messages` and `places` say what is wrong and where;
`columns` compares it with the planned result; `schema` publishes it.
"""

from stagecoach.assets.project.front_matter.columns import check_against as check_against
from stagecoach.assets.project.front_matter.model import KNOWN_KEYS as KNOWN_KEYS
from stagecoach.assets.project.front_matter.model import Backfill as Backfill
from stagecoach.assets.project.front_matter.model import FrontMatter as FrontMatter
from stagecoach.assets.project.front_matter.model import Output as Output
from stagecoach.assets.project.front_matter.model import Retries as Retries
from stagecoach.assets.project.front_matter.model import Schedule as Schedule
from stagecoach.assets.project.front_matter.model import StagesAs as StagesAs
from stagecoach.assets.project.front_matter.parameters import Parameter as Parameter
from stagecoach.assets.project.front_matter.parse import parse_front_matter as parse_front_matter
from stagecoach.assets.project.front_matter.partitions import PARTITION_END as PARTITION_END
from stagecoach.assets.project.front_matter.partitions import PARTITION_KEY as PARTITION_KEY
from stagecoach.assets.project.front_matter.partitions import (
    PARTITION_PARAMETERS as PARTITION_PARAMETERS,
)
from stagecoach.assets.project.front_matter.partitions import PARTITION_START as PARTITION_START
from stagecoach.assets.project.front_matter.partitions import Partitions as Partitions
from stagecoach.assets.project.front_matter.partitions import StaticPartitions as StaticPartitions
from stagecoach.assets.project.front_matter.partitions import TimePartitions as TimePartitions
from stagecoach.assets.project.front_matter.places import FrontMatterError as FrontMatterError
from stagecoach.assets.project.front_matter.places import Places as Places
from stagecoach.assets.project.front_matter.places import Problem as Problem
from stagecoach.assets.project.front_matter.schema import front_matter_schema as front_matter_schema
from stagecoach.assets.project.front_matter.schema import schema_text as schema_text
