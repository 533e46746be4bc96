# Barnabas in a container: `docker build -t barnabas .`, then `docker run -p 9092:9092 barnabas`.
# Every Kafka key comes from the environment, as in the apache/kafka image: num.partitions is KAFKA_NUM_PARTITIONS.
FROM python:3.11-slim

COPY . /usr/src/barnabas
RUN pip install --no-cache-dir /usr/src/barnabas \
    && rm -rf /usr/src/barnabas \
    && useradd --system --home-dir /var/lib/barnabas --shell /usr/sbin/nologin barnabas \
    && install --directory --owner=barnabas --group=barnabas /var/lib/barnabas

# Set in the environment, so that the environment of the user overrides them.
ENV PYTHONUNBUFFERED=1 \
    KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    KAFKA_LOG_DIRS=/var/lib/barnabas

USER barnabas
VOLUME /var/lib/barnabas
EXPOSE 9092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=2s --timeout=2s --start-period=1s --retries=15 CMD ["barnabas", "health", "--quiet"]
ENTRYPOINT ["barnabas", "serve"]
