"""The SparkSession: Java, the jars of the connectors, and the settings for one machine."""
