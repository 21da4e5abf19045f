#!/usr/bin/env bash
# Builds what is tested and runs the tests, installing what is missing.
#
#   scripts/test.sh              what a change needs, in 15 minutes: asan, tsan and host, each
#                                with the tests that show most
#   scripts/test.sh --all        all that continuous integration runs, in 40 to 60 minutes, by the
#                                CPU: every test of asan, tsan, host, aarch64, armhf and riscv64 but
#                                those labelled slow, and clang-tidy; C++ tests of what is the same
#                                there run in asan only
#   scripts/test.sh host         every test of these presets
#   scripts/test.sh host -- ARG  hands what follows to ctest, as in -- -R rpc
#   scripts/test.sh --times      where the time of the last run went, against tests/times.json
#
# Ends with ctest's summary of the last preset, and fails if the tests of any failed.
# RUN_MODEL_TEST_JOBS says how many tests run at the same time (default: one more than there are CPUs,
# since some tests mostly wait). One case of a C++ test: build/host/tests/base/base_test
# --gtest_filter=SUITE.CASE.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib/setup_steps.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/setup_steps.sh"

lint=()
case ${1:-} in
  -h | --help) sed -n '2,18s/^# \{0,1\}//p' "$0"; exit 0 ;;
  --times) exec python3 "$SCRIPTS/checks/test_times.py" "$LOG_DIR" "$REPO_ROOT/tests/times.json" ;;
  --all) lint=(clang-tidy); export RUN_MODEL_DAMAGE_EVERY=${RUN_MODEL_DAMAGE_EVERY:-3} ;;
esac
presets=()
while (($# > 0)) && [[ $1 != -- ]]; do
  case $1 in
    --all) presets+=(asan tsan rest-host aarch64 armhf rest-riscv64) ;;
    -*) die "unknown option '$1': see scripts/test.sh --help." ;;
    *) presets+=("$1") ;;
  esac
  shift
done
(($# == 0)) || shift
((${#presets[@]} > 0)) || presets=(quick-asan quick-tsan quick-host)

# Presets that build for another machine need its libraries.
cross_presets=()
for preset in "${presets[@]}"; do
  machine=${preset#*-}
  [[ ! -f $REPO_ROOT/cmake/toolchains/$machine.cmake ]] || cross_presets+=("$machine")
done

plan_steps $((SETUP_STEPS + 1 + ${#cross_presets[@]} + 2 * ${#presets[@]} + ${#lint[@]}))
run_setup_steps
run_step 'SqueezeNet 1.1' "$SCRIPTS/prepare_squeezenet.sh"
mkdir -p "$LOG_DIR"
rm -f "$LOG_DIR"/*.junit.xml "$LOG_DIR"/*.build_seconds
# Other machines' libraries, which are mostly waited for, are made beside the builds that come first;
# the step below waits for them, or says what is wrong.
((${#cross_presets[@]} == 0)) || "$SCRIPTS/make_sysroot" "${cross_presets[@]}" > /dev/null 2>&1 &
for preset in "${presets[@]}"; do
  if [[ " ${cross_presets[*]} " == *" ${preset#*-} "* ]]; then
    run_step "libraries of ${preset#*-}" "$SCRIPTS/make_sysroot" "${preset#*-}"
  fi
  start=$SECONDS
  run_always "build $preset" run_build "$preset"
  printf '%d\n' $((SECONDS - start)) > "$LOG_DIR/$preset.build_seconds"
done
for check in "${lint[@]}"; do
  run_always "$check" "$SCRIPTS/lint" "$check"
done

cd "$REPO_ROOT"
failed=()
names=
for preset in "${presets[@]}"; do
  begin_step "test $preset"
  printf '\n'
  without_aslr ctest --preset "$preset" --parallel "${RUN_MODEL_TEST_JOBS:-$(($(nproc) + 1))}" \
    --output-junit "$LOG_DIR/$preset.junit.xml" "$@" && continue
  failed+=("$preset")
  names+=" $(cut -d: -f2 "build/${preset#*-}/Testing/Temporary/LastTestsFailed.log" 2> /dev/null | paste -sd ' ' || true)"
done
if ((${#failed[@]} > 0)); then
  die "tests failed:$names. To see those of ${failed[0]} again: ctest --preset ${failed[0]} --rerun-failed"
fi
