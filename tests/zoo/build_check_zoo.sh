#!/usr/bin/env bash
# Builds this machine's check_zoo, which starts those of other machines under their emulators.
set -euo pipefail
cd -- "$1"
[[ -f build/host/build.ninja ]] || cmake --preset host
cmake --build --preset host --target check_zoo
