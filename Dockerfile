# What a worker's container needs to run ldptree: docs/how-to/operate.md, "In containers".
FROM python:3.11-slim AS build
# requirements-dev.lock has Ray too: --build-arg LOCK=requirements-dev.lock
ARG LOCK=requirements.lock
WORKDIR /source
COPY ${LOCK} ./
RUN python -m venv /opt/ldptree \
 && /opt/ldptree/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r ${LOCK}
COPY . .
RUN /opt/ldptree/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation ./ldptree . \
 && /opt/ldptree/bin/ldptree --version

FROM python:3.11-slim
RUN useradd --uid 10001 --create-home ldptree \
 && install -d -o ldptree -g ldptree -m 700 /work
COPY --from=build /opt/ldptree /opt/ldptree
ENV PATH=/opt/ldptree/bin:$PATH \
    LDPTREE_WORK=/work/work \
    PYTHONUNBUFFERED=1
USER ldptree
WORKDIR /work
CMD ["ldptree", "--help"]
