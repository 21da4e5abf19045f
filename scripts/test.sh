#!/usr/bin/env bash
# Builds everything and runs the tests, installing what is missing.
#
#   scripts/test.sh              the presets asan, tsan, host, aarch64, armhf and riscv64
#   scripts/test.sh host         only these presets
#   scripts/test.sh host -- ARG  hands what follows to ctest, as in -- -R params
#
# Ends with ctest's summary of the last preset, and fails if the tests of any failed.
# RUN_MODEL_TEST_JOBS says how many tests run at the same time (default: one more than there are CPUs,
# since some tests mostly wait).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib/setup_steps.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/setup_steps.sh"

case ${1:-} in
  -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
presets=()
while (($# > 0)) && [[ $1 != -- ]]; do
  presets+=("$1")
  shift
done
(($# == 0)) || shift
((${#presets[@]} > 0)) || presets=(asan tsan host aarch64 armhf riscv64)

# Presets that build for another machine need its libraries.
cross_presets=()
for preset in "${presets[@]}"; do
  [[ ! -f $REPO_ROOT/cmake/toolchains/$preset.cmake ]] || cross_presets+=("$preset")
done

plan_steps $((SETUP_STEPS + 1 + ${#cross_presets[@]} + 2 * ${#presets[@]}))
run_setup_steps
run_step 'SqueezeNet 1.1' "$SCRIPTS/prepare_squeezenet.sh"
for preset in "${cross_presets[@]}"; do
  run_step "libraries of $preset" "$SCRIPTS/make_sysroot" "$preset"
done
for preset in "${presets[@]}"; do
  run_always "build $preset" run_build "$preset"
done

cd "$REPO_ROOT"
failed=()
for preset in "${presets[@]}"; do
  begin_step "test $preset"
  printf '\n'
  without_aslr ctest --preset "$preset" --parallel "${RUN_MODEL_TEST_JOBS:-$(($(nproc) + 1))}" "$@" \
    || failed+=("$preset")
done
if ((${#failed[@]} > 0)); then
  die "tests failed in: ${failed[*]}. To see one again: ctest --preset ${failed[0]} --rerun-failed"
fi
