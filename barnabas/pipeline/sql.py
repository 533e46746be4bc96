"""Texts of a job's file that Spark reads as SQL, with the place they come from in the sentence about a mistake."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from barnabas.pipeline.errors import MistakeError

if TYPE_CHECKING:
    from pyspark.sql import Column


def sql(text: str, place: str) -> Column:
    """The expression; `place` is where it stands, `[columns] day`. MistakeError when it is not SQL.

    Names in it are resolved later, when a frame takes it.
    """
    try:
        SparkSession.active()._jsparkSession.sessionState().sqlParser().parseExpression(text)  # `expr` does it later
    except ParseException as error:
        said = re.sub(r"^\[[\w.]+\]\s*|\s*SQLSTATE: .*", "", str(error).strip().splitlines()[0]).rstrip(" .")
        raise MistakeError(f"{place}: {text!r} is not SQL: {said[:1].lower() + said[1:]}") from error
    return f.expr(text)


def named(name: str) -> Column:
    """The column of exactly this name, also if there is a dot in it."""
    return f.col("`" + name.replace("`", "``") + "`")
