#!/usr/bin/env bash
# Sets up everything that building, testing and compiling models need: Debian packages, the TVM
# compiler (build/tvm) and the Python environment (build/venv).  Cheap when it is all there.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib/setup_steps.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/setup_steps.sh"

plan_steps "$SETUP_STEPS"
run_setup_steps
