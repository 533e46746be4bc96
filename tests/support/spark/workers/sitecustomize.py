"""For Spark's Python workers, which have this folder in their path: PySpark is imported from its own folder.

Spark puts archives in front of the path: `pyspark.zip`, py4j's, a jar. Before each task a worker has their lists of
files read again, some of them many times (`importlib.invalidate_caches`). This takes 0.2 CPU seconds, more than most
tasks of a test.
"""

from __future__ import annotations

import sys

sys.path[:] = [path for path in sys.path if not path.endswith(("pyspark.zip", "-src.zip", ".jar"))]
sys.path_importer_cache.clear()
