#!/usr/bin/env bash
# Sets up everything that building, testing and compiling models need: Debian packages, the TVM
# compiler (build/tvm) and the Python environment (build/venv).  Cheap when it is all there.
set -euo pipefail
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/setup_steps.sh"

STEP_TOTAL=$SETUP_STEPS
run_setup_steps
