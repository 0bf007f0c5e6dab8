# streamer in a small image: `docker build -t streamer .`, then `docker run --rm streamer --help`.
# All stages have the same Debian: what one compiles or installs runs in the next.

# The wheel, where there is a Rust toolchain. It fits every Python from 3.11 on, so Debian's will do.
FROM rust:1.95.0-slim-bookworm@sha256:d7482085ff5b415f84dba5647ae71606650bdef00db7aeb69f4b3d170c3e4082 AS wheel
WORKDIR /src
# It is compiled twice: what benchmarks/training.py does with the first says how to compile the second.
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 MATURIN_PEP517_ARGS="--strip --pgo"
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && rustup component add llvm-tools
COPY pyproject.toml LICENSE ./
COPY docs/package.md docs/
COPY core/Cargo.toml core/Cargo.lock core/build_backend.py core/THIRD-PARTY.txt core/
COPY core/src core/src
COPY streamer streamer
COPY benchmarks/endless.py benchmarks/measure.py benchmarks/raw_log.py benchmarks/training.py benchmarks/
# What was compiled stays beside the layers: a changed line of Python compiles nothing again.
RUN --mount=type=cache,target=/src/core/target --mount=type=cache,target=/usr/local/cargo/registry \
    python3 -m pip wheel --no-deps --wheel-dir /wheels .

# Both stages must have the same Python: the second takes the first one's virtual environment.
FROM python:3.12.12-slim-bookworm@sha256:593bd06efe90efa80dc4eee3948be7c0fde4134606dd40d8dd8dbcade98e669c AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv --without-pip /opt/streamer
# What it depends on, in a layer of its own: a changed line of ours does not install it again. With
# the extra `aws`, without which AWS_MSK_IAM and glue:// would be refused in every image.
COPY pyproject.toml ./
COPY requirements/constraints.txt requirements/
RUN python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; print(*p["dependencies"], *p["optional-dependencies"]["aws"], sep="\n")' \
        > requirements/dependencies.txt \
    && pip --python /opt/streamer/bin/python install --no-compile \
        -c requirements/constraints.txt -r requirements/dependencies.txt
COPY --from=wheel /wheels /wheels
RUN pip --python /opt/streamer/bin/python install --no-compile --no-deps /wheels/*.whl

FROM python:3.12.12-slim-bookworm@sha256:593bd06efe90efa80dc4eee3948be7c0fde4134606dd40d8dd8dbcade98e669c
# The interpreter stays; what installs packages goes.
RUN python -m pip uninstall --quiet --yes --root-user-action ignore pip \
    && rm -rf /usr/local/lib/python3.12/ensurepip \
    && find /usr/local -name __pycache__ -prune -exec rm -rf {} + \
    && useradd --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin streamer
COPY --from=build /opt/streamer /opt/streamer
# Compiled modules are kept below /tmp, so that a process that is started again there starts faster.
ENV PATH=/opt/streamer/bin:$PATH PYTHONUNBUFFERED=1 PYTHONPYCACHEPREFIX=/tmp/python
# By number: Kubernetes can see that it is not root. It writes below /tmp only.
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
ARG VERSION=0.2.0
LABEL org.opencontainers.image.title="streamer" \
      org.opencontainers.image.description="Live, exact metrics for recommender, ranking and ads teams" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/python:3.12.12-slim-bookworm" \
      org.opencontainers.image.base.digest="sha256:593bd06efe90efa80dc4eee3948be7c0fde4134606dd40d8dd8dbcade98e669c"
ENTRYPOINT ["streamer"]
CMD ["--help"]
