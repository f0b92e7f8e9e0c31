#!/usr/bin/env bash
# Runs test programs and ends in one plain line: N passed, N failed, N skipped.
#
#   run.sh FILTER SLOW PROGRAM...     FILTER: a gtest pattern; SLOW: 1 runs tests with Slow in the name
#
# The reasons of skips and the output of failed tests are printed; passing tests stay silent.
set -u
filter=$1 slow=$2
shift 2
[ "$slow" = 1 ] || filter="$filter-*Slow*"
passed=0 failed=0 skipped=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
log=$logs/all

# run_shards PROGRAM: runs its tests in as many processes as there are cores; writes one log.  Those
# of the emulated GPU stay in one: its seeded orders follow from what ran before.
run_shards() {
  local shards i pids=() code=0
  shards=1
  [[ $1 != */rowtide-tests ]] || shards=$(nproc)
  for ((i = 0; i < shards; ++i)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i \
      "$1" --gtest_filter="$filter" --gtest_color=no >"$logs/$i" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
  for ((i = 0; i < shards; ++i)); do cat "$logs/$i"; done >"$log"
  return $code
}

for program in "$@"; do
  run_shards "$program"
  code=$?
  p=$(grep -cE '^\[       OK \]' "$log")
  f=$(grep -E '^\[  FAILED  \] .* \([0-9]+ ms\)$' "$log" | grep -c .)
  s=$(grep -E '^\[  SKIPPED \] .* \([0-9]+ ms\)$' "$log" | grep -c .)
  if [ $code -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi  # it crashed before it could say so
  if [ "$f" -ne 0 ]; then
    echo "--- $program (exit $code)"
    grep -vE '^\[ RUN      \]|^\[       OK \]|^\[-----' "$log" | tail -n 300
  elif [ "$s" -ne 0 ]; then
    grep -E -A1 '^Skipped|: Skipped' "$log" | grep -vE '^--|^\[' | sort | uniq -c
  fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
