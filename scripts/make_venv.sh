#!/usr/bin/env bash
# Makes a Python environment, every version pinned, unless that has been done.
#
#   scripts/make_venv.sh [NAME]            tools: build/venv, from requirements.txt (default);
#                                          lint: build/lint, from requirements-lint.txt;
#                                          coverage: build/coverage_tools, requirements-coverage.txt
#   scripts/make_venv.sh [NAME] --check    exit status 0 if it has been done
#
# RUN_MODEL_PYTHON names the interpreter to build it with (default /usr/bin/python3).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib/steps.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/steps.sh"

REQUIREMENTS=$REPO_ROOT/scripts/requirements.txt
VENV=$BUILD_DIR/venv
case ${1:-} in
  tools) shift ;;
  lint)
    REQUIREMENTS=$REPO_ROOT/scripts/requirements-lint.txt
    VENV=$BUILD_DIR/lint
    shift
    ;;
  coverage)
    REQUIREMENTS=$REPO_ROOT/scripts/requirements-coverage.txt
    VENV=$BUILD_DIR/coverage_tools
    shift
    ;;
esac
NAME=${VENV##*/}
PYTHON=${RUN_MODEL_PYTHON:-/usr/bin/python3}

# A venv cannot be moved, and depends on its interpreter: both belong to the key. Several checkouts may
# have one build folder, by links.
key() {
  printf '%s %s %s' "$(hash_of "$REQUIREMENTS")" "$(readlink -m "$VENV")" "$("$PYTHON" -V)" |
    sha256sum | cut -d' ' -f1
}
is_done() {
  [[ -x $VENV/bin/python ]] && stamp_is "$NAME" "$(key)"
}

command -v "$PYTHON" > /dev/null || {
  [[ ${1:-} == --check ]] && exit 1
  die "$PYTHON was not found: run scripts/install_packages.sh, or set RUN_MODEL_PYTHON."
}
case ${1:-} in
  --check) is_done && exit 0 || exit 1 ;;
  '') ;;
  *) die "unknown argument '$1'; known are tools, lint, coverage and --check." ;;
esac
if is_done; then
  echo "The Python environment is in $VENV."
  exit 0
fi

"$PYTHON" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' || die "$PYTHON \
is $("$PYTHON" -V), and the pinned packages are for Python 3.10 to 3.12 (3.11 is tested): set \
RUN_MODEL_PYTHON to such an interpreter."

drop_stamp "$NAME"
rm -rf "$VENV"
"$PYTHON" -m venv "$VENV" || die "$PYTHON could not make a virtual environment: on Debian, install \
the package python3-venv (scripts/install_packages.sh does)."
"$VENV/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off \
  --only-binary :all: --requirement "$REQUIREMENTS" || die "pip could not install \
$REQUIREMENTS: if its message above speaks of a connection or of no matching version, the Python \
package index (pypi.org, or the one in your pip configuration) could not be reached; check the \
network and run this again."
write_stamp "$NAME" "$(key)"
