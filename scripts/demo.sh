#!/usr/bin/env bash
# From a fresh Debian 12 to a named cat: installs what is missing, builds run_model, compiles
# SqueezeNet 1.1 and runs it on a photograph.  What is done already is not done again.
#
#   scripts/demo.sh [PICTURE]
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib/setup_steps.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/setup_steps.sh"

case ${1:-} in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
picture=$(realpath -- "${1:-$REPO_ROOT/images/chelsea.png}")
[[ -f $picture ]] || die "$picture is not there."

plan_steps $((SETUP_STEPS + 2))
run_setup_steps
run_always 'run_model' run_build host run_model
run_step 'SqueezeNet 1.1' "$SCRIPTS/prepare_squeezenet.sh"

cd "$REPO_ROOT"
command=(build/host/bin/run_model squeezenet1_1 artifacts "${picture#"$REPO_ROOT/"}"
  labels/imagenet.txt)
printf '\n$ %s\n' "${command[*]}"
exec "${command[@]}"
