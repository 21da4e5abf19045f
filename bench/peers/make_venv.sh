#!/usr/bin/env bash
# Makes build/bench/peers_venv, the Python environment of the peers that the side-by-side bench
# runs, from the files in requirements/; for litert also build/bench/litert_converter.
#
#   bench/peers/make_venv.sh [PEER...]   installs what is not there yet (default: every peer)
#
# PEER is onnxruntime, openvino, ncnn, mnn or litert. One that this machine cannot have is said to
# be left out, and the others are installed all the same.
# RUN_MODEL_PYTHON names the interpreter to build it with (default /usr/bin/python3).
set -euo pipefail
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../../scripts/lib/steps.sh
source "$HERE/../../scripts/lib/steps.sh"

PYTHON=${RUN_MODEL_PYTHON:-/usr/bin/python3}
ALL_PEERS=(onnxruntime openvino ncnn mnn litert)

# key FOLDER PART : a venv cannot be moved, and depends on its interpreter.
key() {
  printf '%s %s %s' "$(hash_of "$HERE/requirements/$2.txt")" "$1" "$("$PYTHON" -V)" |
    sha256sum | cut -d' ' -f1
}

# install FOLDER PART : into the environment FOLDER what requirements/PART.txt lists, which is all
# that it needs, so that nothing else is pulled in.
install() {
  local stamp=bench_$2
  if [[ -x $1/bin/python ]] && stamp_is "$stamp" "$(key "$1" "$2")"; then
    return 0
  fi
  drop_stamp "$stamp"
  [[ -x $1/bin/python ]] || "$PYTHON" -m venv "$1" || die "$PYTHON could not make a virtual \
environment: on Debian, install the package python3-venv (scripts/install_packages.sh does)."
  "$1/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off --quiet \
    --no-deps --only-binary :all: --requirement "$HERE/requirements/$2.txt" || return 1
  write_stamp "$stamp" "$(key "$1" "$2")"
}

command -v "$PYTHON" > /dev/null ||
  die "$PYTHON was not found: run scripts/install_packages.sh, or set RUN_MODEL_PYTHON."
if (($# == 0)); then
  set -- "${ALL_PEERS[@]}"
fi
for peer in "$@"; do
  [[ " ${ALL_PEERS[*]} " == *" $peer "* ]] ||
    die "there is no peer '$peer': it is one of ${ALL_PEERS[*]}."
done

VENV=$BUILD_DIR/bench/peers_venv
for part in common plot; do
  install "$VENV" "$part" || die "pip could not install $HERE/requirements/$part.txt: if its \
message above speaks of a connection or of no matching version, the Python package index \
(pypi.org, or the one in your pip configuration) could not be reached, or has none for \
$("$PYTHON" -V) on $(uname -m)."
done
for peer in "$@"; do
  install "$VENV" "$peer" ||
    echo "$peer is left out: pip could not install it on this machine (see above)." >&2
  [[ $peer != litert ]] || install "$BUILD_DIR/bench/litert_converter" litert_converter ||
    echo "litert is left out: pip could not install its converter on this machine (see above)." >&2
done
