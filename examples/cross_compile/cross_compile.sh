#!/usr/bin/env bash
# From one ONNX file to archives for two boards, checked before anything is copied.
#
#   examples/cross_compile/cross_compile.sh                           SqueezeNet 1.1
#   examples/cross_compile/cross_compile.sh NET.onnx PREPROCESSING    a network of your own
#
# PREPROCESSING is imagenet, caffe or a JSON file (scripts/COMPILING.md). The results are
# build/examples/cross_compile/boards/{raspi4_aarch64,pynq_z1}.tar.gz.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

case ${1:-} in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
work=build/examples/cross_compile
targets=(raspi4_aarch64 pynq_z1)
presets=(aarch64 armhf)

# 1. The compiler, the Python environment, and a network.
scripts/setup.sh
if (($# == 0)); then
  scripts/fetch_zoo squeezenet1_1
  set -- build/zoo/squeezenet1_1.onnx caffe
fi
onnx=$1
preprocessing=$2
name=$(basename -- "$onnx" .onnx)

# 2. The programs, for this machine and for each kind of board.
cmake --preset host
cmake --build --preset host --target check_zoo
for preset in "${presets[@]}"; do
  scripts/make_sysroot "$preset"
  cmake --preset "$preset"
  cmake --build --preset "$preset" --target run_model check_zoo
done

# 3. The network, compiled for each board's CPU.
for target in "${targets[@]}"; do
  scripts/compile_model "$onnx" --name "$name" --target "$target" --out "$work/artifacts" \
    --preprocessing "$preprocessing"
done

# 4. What is right: ONNX Runtime's results on the original network, for pictures of your choice.
scripts/make_golden --model "$onnx" --name "$name" --preprocessing "$preprocessing" \
  --pictures images/chelsea.png images/coffee.png --out "$work/golden"

# 5. The check, under an emulator of each board's CPU.  Ends this script where a result is wrong.
build/host/bin/check_zoo --artifacts "$work/artifacts" --golden "$work/golden" \
  --target "$(IFS=,; echo "${targets[*]}")"

# 6. One archive for each board, with the reference results, so that ./check_zoo repeats the check there.
for target in "${targets[@]}"; do
  scripts/pack_board "$target" --models "$name" --artifacts "$work/artifacts" \
    --golden "$work/golden" --out "$work/boards"
done
