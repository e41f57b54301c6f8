# The pipeline in a container: `docker build -t perfcast .`, then `docker run -v "$PWD/results:/project/results" perfcast`.
# torch of the default index brings the libraries of GPUs; `--build-arg TORCH_INDEX=<address>` names one of builds for
# processors alone, a tenth of the size. The versions are those of requirements.lock either way.
FROM python:3.11-slim AS build
ARG TORCH_INDEX=
WORKDIR /project
RUN python -m venv /opt/perfcast
ENV PATH=/opt/perfcast/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.lock ./
# pip compiles what it installs, so that no job of a run has to
# hadolint ignore=DL3013
RUN python -m pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep -o '^torch==[^ ]*' requirements.lock)"
RUN python -m pip install --no-deps --require-hashes -r requirements.lock
COPY pyproject.toml setup.py README.md LICENSE params.yaml Snakefile ./
COPY conf ./conf
COPY workflow ./workflow
COPY src ./src
RUN python -m pip install --no-deps .

FROM python:3.11-slim
# what LightGBM is linked with
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --no-install-recommends --yes libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 perfcast
COPY --from=build /opt/perfcast /opt/perfcast
ENV PATH=/opt/perfcast/bin:$PATH OMP_NUM_THREADS=1 MLFLOW_DISABLE_TELEMETRY=true DVC_NO_ANALYTICS=true
WORKDIR /project
COPY --chown=perfcast:perfcast Snakefile params.yaml dvc.yaml ./
COPY --chown=perfcast:perfcast conf ./conf
COPY --chown=perfcast:perfcast data ./data
COPY --chown=perfcast:perfcast workflow ./workflow
RUN ln -s workflow/profiles profiles && mkdir results && chown perfcast:perfcast /project /project/results
USER 1000
ENTRYPOINT ["snakemake"]
