"""The pipeline: PySpark jobs against a broker, and what a notebook uses of them through `barnabas.pipeline`.

`main` runs a job from its TOML file to its exit code, `run` starts the queries and watches them. A job (`job`, `jobs/`)
is a DataFrame's way from topics to sinks (`frames/`, `topics/`). `settings/` has the keys of the files, `session/`
starts Spark, `report/` shows a run, `demo/` is the demonstration. A mistake of the user is one sentence (`errors`),
written before Spark starts where that is possible.
"""
