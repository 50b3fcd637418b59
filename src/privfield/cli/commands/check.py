"""`privfield check`: how well the data fit the schema, for their owner only."""

from __future__ import annotations

from dataclasses import asdict

from privfield.cli.arguments import options
from privfield.cli.terminal.console import say, say_json, shout

HELP = """Count what in FILE does not fit the schema. PRIVATE: for the data's owner only.

Example:  [bold]privfield check symptoms.csv --schema symptoms.toml[/bold]

The numbers are exact, no noise protects anybody in them: never publish or store them. Nothing is
charged, because nothing may leave. It shouts where more than 5% of a column are outside the schema,
or where a quote that is never closed swallows the rest of a CSV file.
"""


def check(
    file: options.DataFile,
    schema: options.SchemaFile,
    encoding: options.Encoding = None,
    spark: options.Spark = None,
    json: options.Json = False,
) -> None:
    """Count, and show to the owner."""
    from privfield.cli.arguments.files import named_data, open_data, read_schema
    from privfield.cli.terminal.bars import bars
    from privfield.data.check import check as count

    rules = read_schema(schema)
    data = named_data(file, spark, encoding)
    open_data(file, rules, data)
    with bars("reading"):
        found = count(data, rules)
    if json:
        marked = {"PRIVATE": "for the data's owner only; never publish or store", **asdict(found)}
        say_json({**marked, "alarms": list(found.alarms)})
    else:
        for line in repr(found).splitlines():
            (shout if line.startswith("ATTENTION: ") else say)(line)
