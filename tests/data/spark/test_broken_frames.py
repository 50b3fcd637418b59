"""Frames that Spark cannot analyse: an error of ours, without Spark's words, which may quote."""

import traceback

import pytest

from privfield.data.spark.source import SparkSource
from privfield.errors import InputError


class AnalysisException(Exception):  # Spark's name
    """As Spark Connect raises it, when somebody asks for the columns."""


class Frame:
    isStreaming = False  # Spark's name

    def __init__(self, *parts):
        self.parts = parts

    def __getattr__(self, name):
        if name in self.parts:
            raise AnalysisException("[UNRESOLVED_COLUMN] SECRET: Project ['no_such + 1]")
        raise AttributeError(name)

    @property
    def schema(self):
        if "schema" in self.parts:
            return self._schema
        kind = type("StringType", (), {})()
        field = type("Field", (), {"name": "a", "dataType": kind})()
        return type("Fields", (), {"fields": [field]})()


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (Frame("schema", "_schema"), "cannot say which columns the frame has"),
        (Frame("_jdf"), "cannot show the plan"),
    ],
)
def test_what_spark_says_of_a_broken_frame_is_not_shown(frame, told):
    with pytest.raises(InputError, match=told) as raised:
        SparkSource(frame, ["a"], False)
    assert "SECRET" not in "".join(traceback.format_exception(raised.value))
    assert raised.value.__context__ is None
