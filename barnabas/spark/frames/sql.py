"""SQL expressions of a job's file, checked, with their key in the error's sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from barnabas.spark.errors import MistakeError

if TYPE_CHECKING:
    from pyspark.sql import Column


def sql(text: str, place: str) -> Column:
    """Parse an expression; `place` is its key, `[columns] day`. MistakeError if it is not SQL.

    Its names are resolved later, when it is used in a DataFrame.
    """
    try:
        SparkSession.active()._jsparkSession.sessionState().sqlParser().parseExpression(
            text
        )  # `expr` would parse it later
    except ParseException as error:
        message = re.sub(r"^\[[\w.]+\]\s*|\s*SQLSTATE: .*", "", str(error).strip().splitlines()[0]).rstrip(" .")
        raise MistakeError(f"{place}: {text!r} is not SQL: {message[:1].lower() + message[1:]}") from error
    return f.expr(text)


def named(name: str) -> Column:
    """The column with exactly this name, which may contain dots."""
    return f.col("`" + name.replace("`", "``") + "`")
