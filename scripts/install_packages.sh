#!/usr/bin/env bash
# Installs the Debian packages named in packages.txt, with sudo where the user is not root.
#
#   scripts/install_packages.sh            installs what is missing
#   scripts/install_packages.sh --check    exit status 0 if nothing is missing
#   scripts/install_packages.sh --list     prints what is missing
#
# RUN_MODEL_SKIP_PACKAGES=1 leaves the system alone, for other distributions.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib/steps.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/steps.sh"

LIST=$REPO_ROOT/scripts/packages.txt

missing_packages() {
  local wanted installed
  wanted=$(sed 's/#.*//; s/[[:space:]]//g; /^$/d' "$LIST" | sort -u)
  # dpkg-query fails where a package is unknown, and still lists the others.
  # shellcheck disable=SC2016
  installed=$(xargs dpkg-query -W -f '${db:Status-Status} ${Package}\n' <<< "$wanted" 2> /dev/null \
    | sed -n 's/^installed //p' | sort -u || true)
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$installed")
}

if [[ ${RUN_MODEL_SKIP_PACKAGES:-0} == 1 ]]; then
  exit 0
fi
command -v dpkg-query > /dev/null || die "this system has no dpkg: install what $LIST names (or \
its like) by other means, then set RUN_MODEL_SKIP_PACKAGES=1."

mapfile -t missing < <(missing_packages)
case ${1:-} in
  --check) ((${#missing[@]} == 0)) && exit 0 || exit 1 ;;
  --list) ((${#missing[@]} == 0)) || printf '%s\n' "${missing[@]}"; exit 0 ;;
  '') ;;
  *) die "unknown argument '$1'; known are --check and --list." ;;
esac
if ((${#missing[@]} == 0)); then
  echo 'All packages are installed.'
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  command -v sudo > /dev/null || die "installing packages needs root, and there is no sudo. As \
root, run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
# Waits for another apt on the same machine rather than failing.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3
  -o DPkg::Lock::Timeout=300)

echo "Missing: ${missing[*]}"
"${apt[@]}" update || die "the Debian package archive could not be reached ('apt-get update' \
failed): check the network and /etc/apt/sources.list*, then run this again."
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" || die "the Debian packages \
${missing[*]} could not be installed: see apt's message above, then run this again."
