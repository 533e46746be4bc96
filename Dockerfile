# Barnabas in a container: `docker build -t barnabas .`, then `docker run -p 9092:9092 barnabas`.
# With the console at http://localhost:8080: `docker run -p 9092:9092 -p 127.0.0.1:8080:8080 barnabas --console`.
# The host connects to localhost:9092, other containers of the same network to this container's name and port 19092.
# Published on another port, as with -p 19999:9092: -e KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:19999.
# Every Kafka key comes from the environment, as in the apache/kafka image: num.partitions is KAFKA_NUM_PARTITIONS.
# KAFKA_LISTENERS replaces both listeners (see docker-compose.yml); the health check connects to the first of them.
FROM python:3.11-slim

COPY . /usr/src/barnabas
RUN pip install --no-cache-dir /usr/src/barnabas \
    && rm -rf /usr/src/barnabas \
    && useradd --system --home-dir /var/lib/barnabas --shell /usr/sbin/nologin barnabas \
    && install --directory --owner=barnabas --group=barnabas /var/lib/barnabas

# Set in the environment, so that the environment of the user overrides them.
ENV PYTHONUNBUFFERED=1 \
    KAFKA_LOG_DIRS=/var/lib/barnabas

USER barnabas
VOLUME /var/lib/barnabas
EXPOSE 9092 19092 8080
STOPSIGNAL SIGTERM
# A slow machine may need seconds to start Python; the broker has a minute before a failure counts.
HEALTHCHECK --interval=3s --timeout=15s --start-period=60s --retries=5 \
    CMD ["barnabas", "health", "--quiet", "--timeout", "10"]
ENTRYPOINT ["barnabas", "serve", "--in-container"]
