"""What may be in a table: variables, levels, units; public knowledge, kept in a TOML file."""

from privfield.schema.schema import Schema as Schema
from privfield.schema.schema import check_schema as check_schema
from privfield.schema.variables import Bins as Bins
from privfield.schema.variables import Ordered as Ordered
from privfield.schema.variables import Person as Person
from privfield.schema.variables import Variable as Variable
from privfield.schema.variables import check_name as check_name
from privfield.schema.variables import level_numbers as level_numbers
from privfield.schema.variables import level_text as level_text
from privfield.schema.variables import number_text as number_text
from privfield.schema.variables import spin_names as spin_names
