# streamer in a small image: `docker build -t streamer .`, then `docker run --rm streamer --help`.
# Both stages must have the same Python: the second takes the first one's virtual environment.
FROM python:3.12.12-slim-bookworm AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/streamer
COPY pyproject.toml README.md LICENSE ./
COPY requirements/constraints.txt requirements/
COPY streamer streamer
RUN /opt/streamer/bin/pip wheel --no-deps --wheel-dir /wheels .
RUN /opt/streamer/bin/pip install -c requirements/constraints.txt /wheels/*.whl \
    && /opt/streamer/bin/python -m compileall -q /opt/streamer/lib

FROM python:3.12.12-slim-bookworm
RUN useradd --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin streamer
COPY --from=build /opt/streamer /opt/streamer
ENV PATH=/opt/streamer/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# By number: Kubernetes can see that it is not root. It writes below /tmp only.
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
ENTRYPOINT ["streamer"]
CMD ["--help"]
