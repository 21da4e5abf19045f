# Sourced by setup.sh, demo.sh and test.sh: the numbered steps that they share.
# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source=steps.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/steps.sh"

SCRIPTS=$REPO_ROOT/scripts
# shellcheck disable=SC2034  # for plan_steps
SETUP_STEPS=3

run_setup_steps() {
  # Asked for here, where a password prompt is not hidden in a log.
  if ((EUID != 0)) && command -v sudo > /dev/null && ! "$SCRIPTS/install_packages.sh" --check; then
    sudo -v || die 'installing the Debian packages needs root: run as root or as a user with sudo.'
  fi
  run_step 'Debian packages' "$SCRIPTS/install_packages.sh"
  run_step 'TVM compiler' "$SCRIPTS/install_compiler.sh"
  run_step 'Python environment' "$SCRIPTS/make_venv.sh"
}

# without_aslr COMMAND... : runs it at fixed addresses where the system allows that.  Programs built
# with GCC 12's sanitizers do not start on kernels that randomise more bits than they expect, and
# building runs them too, to list their tests.
without_aslr() {
  local prefix=(setarch "$(uname -m)" --addr-no-randomize)
  "${prefix[@]}" true 2> /dev/null || prefix=()
  "${prefix[@]}" "$@"
}

# run_build PRESET [TARGET...] : configures and builds; both find out by themselves that nothing
# changed.  quick-PRESET and rest-PRESET build less in the same folder.
run_build() {
  local preset=$1 folder=${1#*-}
  shift
  cd "$REPO_ROOT" || exit 1
  if [[ ! -f build/$folder/build.ninja ]]; then
    cmake --preset "$folder" || die "CMake could not configure the preset '$folder': see its \
message above."
  fi
  without_aslr cmake --build --preset "$preset" ${1:+--target "$@"} || die "the preset '$preset' did not build: \
see the compiler's message above."
}
