# Sourced by the shell scripts here: where things are, how a step speaks, and how a finished
# step is remembered.  Needs bash and coreutils only, since it runs before anything is installed.
# shellcheck shell=bash

REPO_ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD_DIR=$REPO_ROOT/build
STAMP_DIR=$BUILD_DIR/stamps
LOG_DIR=$BUILD_DIR/logs

# die SENTENCE... : says what went wrong and ends the script.
die() {
  printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2
  exit 1
}

# hash_of PATH... : one SHA-256 over the contents of the files, in the order given.
hash_of() {
  cat -- "$@" | sha256sum | cut -d' ' -f1
}

# A stamp build/stamps/NAME holds the hash of the inputs that the finished step was made from.
stamp_is() {
  [[ -f $STAMP_DIR/$1 && $(<"$STAMP_DIR/$1") == "$2" ]]
}

# Written through a rename, so that it is whole or not there.
write_stamp() {
  mkdir -p "$STAMP_DIR"
  printf '%s\n' "$2" > "$STAMP_DIR/$1.new"
  mv -f "$STAMP_DIR/$1.new" "$STAMP_DIR/$1"
}

# Before the work starts: what an interrupted step leaves must not look finished.
drop_stamp() {
  rm -f "$STAMP_DIR/$1"
}

STEP_NUMBER=0
STEP_TOTAL=0

# plan_steps COUNT : says how many numbered steps there will be.
plan_steps() {
  STEP_TOTAL=$1
}

# run_step TITLE COMMAND [ARG...] : runs one numbered step.  "COMMAND ARG... --check" must say by
# its exit status whether the work is done already.  Output goes to build/logs/; on a terminal
# the seconds are counted while the step runs, and if it fails the end of its log is shown.
run_step() {
  local title=$1
  shift
  begin_step "$title"
  if "$@" --check > /dev/null 2>&1; then
    end_step 'already done'
    return
  fi
  run_logged "$title" "$@"
}

# run_always TITLE COMMAND [ARG...] : the same for a command that finds out by itself, and
# quickly, that there is nothing to do (ninja, for one).
run_always() {
  begin_step "$1"
  run_logged "$@"
}

begin_step() {
  STEP_NUMBER=$((STEP_NUMBER + 1))
  STEP_PREFIX="[$STEP_NUMBER/$STEP_TOTAL] $1 ..."
  printf '%s' "$STEP_PREFIX"
}

end_step() {
  if [[ -t 1 ]]; then
    printf '\r%s %s\033[K\n' "$STEP_PREFIX" "$1"
  else
    printf ' %s\n' "$1"
  fi
}

run_logged() {
  local title=$1 log start=$SECONDS status=0 pid
  shift
  mkdir -p "$LOG_DIR"
  log=$LOG_DIR/$(tr -cs 'a-z0-9' '_' <<< "${title,,}" | sed 's/^_*//; s/_*$//').log
  # A process group of its own (set -m), so that an interrupt ends all of the step.
  set -m
  "$@" > "$log" 2>&1 < /dev/null &
  pid=$!
  set +m
  trap 'kill -TERM -- "-$pid" 2> /dev/null || true; printf "\n"; exit 130' INT TERM
  if [[ -t 1 ]]; then
    while kill -0 "$pid" 2> /dev/null; do
      printf '\r%s %d s' "$STEP_PREFIX" $((SECONDS - start))
      sleep 0.5
    done
  fi
  wait "$pid" || status=$?
  trap - INT TERM
  if ((status != 0)); then
    end_step "FAILED ($((SECONDS - start)) s)"
    printf 'The end of %s:\n' "$log" >&2
    tail -n 30 -- "$log" | sed 's/^/  | /' >&2
    exit "$status"
  fi
  end_step "done ($((SECONDS - start)) s)"
}
