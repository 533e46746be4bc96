"""Java programs of tests and benchmarks: the command lines of processes (`command`), and one JVM for all that end by
themselves (`host`), which also compiles the programs in `compat` (`sources`); jars of poms (`jars`)."""
