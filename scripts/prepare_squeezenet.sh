#!/usr/bin/env bash
# Makes artifacts/squeezenet1_1/native: fetches SqueezeNet 1.1 with its ImageNet weights and
# compiles it for this machine.  Does nothing where that has been done.
#
#   scripts/prepare_squeezenet.sh            makes it
#   scripts/prepare_squeezenet.sh --check    exit status 0 if it is there and up to date
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib/steps.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/steps.sh"

fetch=("$REPO_ROOT/scripts/fetch_zoo" squeezenet1_1)
compile=("$REPO_ROOT/scripts/compile_model" "$BUILD_DIR/zoo/squeezenet1_1.onnx"
  --name squeezenet1_1 --target native --out "$REPO_ROOT/artifacts")

case ${1:-} in
  --check) "${fetch[@]}" --check && "${compile[@]}" --check; exit ;;
  '') ;;
  *) die "unknown argument '$1'; the only one is --check." ;;
esac

# Tests that need the artifact may ask for it at the same time.
mkdir -p "$BUILD_DIR"
exec 9> "$BUILD_DIR/squeezenet.lock"
flock 9
"${fetch[@]}"
"${compile[@]}"
