# Loadstone with its pinned environment. Built from the checkout: docker build -t loadstone .
# Everything comes from Debian's packages and from registries of packages, each pinned by uv.lock, go.sum and package-lock.json.
# The base image is pinned by its tag; give a digest to pin its bytes: --build-arg BASE=debian:trixie-slim@sha256:...
ARG BASE=debian:trixie-slim
FROM ${BASE}
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates git make python3 python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/loadstone
COPY . .
RUN make setup
ENV PATH=/opt/loadstone/.venv/bin:/opt/loadstone/.tools/bin:$PATH
# Configuration, archive, tables and site lie in the folder that is mounted here.
WORKDIR /data
ENTRYPOINT ["snakemake", "--snakefile", "/opt/loadstone/Snakefile", "--workflow-profile", "/opt/loadstone/profiles/default"]
CMD ["--cores", "all", "report"]
