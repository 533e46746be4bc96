"""Code that tests, benchmarks and the compatibility suites share. It imports the product, but none of them.

- `memory`: a broker, a controller and a cluster in this process, without sockets; `disks`: their disks, which fail
- `cluster`: a cluster whose nodes are started, killed and cut off one by one; `controller`: its controller alone
- `processes`: brokers, Barnabas and Apache Kafka, and commands as processes; `security`: their certificates and tokens
- `requests`: a raw client, and the requests and responses that tests of many APIs send and compare
- `logs`: logs and batches made without a broker
- `jvm`, `spark`: programs in Java, Spark sessions
- `measuring`: pytest plugins that say what a run costs
- `waiting.py` waits, `cases.py` runs the cases of a test, `volume.py` has sizes and seeds
"""
