"""The plugin of mypy: pydantic's, or, without the libraries of the pipeline, one that leaves the pipeline out.

Work on the broker needs neither pydantic nor PySpark. Without them the classes of the pipeline have unknown bases,
which `strict` refuses. With them every module is checked as strictly as the configuration says.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from mypy.options import Options
from mypy.plugin import Plugin

LIBRARIES = ("pydantic", "pyspark")
LEFT_OUT = ("barnabas.spark.*", "barnabas.cli.pipeline")


class WithoutPipeline(Plugin):
    """Reports no errors in the pipeline, and says so."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        for modules in LEFT_OUT:
            options.per_module_options[modules] = {"ignore_errors": True}
        options.build_per_module_cache()


def plugin(version: str) -> type[Plugin]:
    """mypy's entry point; it is called with mypy's version."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if not missing:
        from pydantic.mypy import plugin as of_pydantic

        return of_pydantic(version)
    print(f"{', '.join(LEFT_OUT)} are not checked: {' and '.join(missing)} not installed", file=sys.stderr)
    return WithoutPipeline
