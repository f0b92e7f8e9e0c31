#!/usr/bin/env bash
# The demo: a model larger than its memory, trained, evaluated, and proven exact.
#
#   demo.sh PROGRAMS            PROGRAMS: the folder of the built rowtide
#
#   DATA=train.txt              the user's own Criteo file instead of a synthetic data set
#   DEMO_ROWS=2000000           rows to write; batch and budgets grow and shrink with them
#   DEMO_DIR=build/demo         where everything goes; a demo that was there is removed
set -euo pipefail
rowtide=$1/rowtide
config=$(dirname "$0")/configs/demo.toml
data=${DATA:-}
rows=${DEMO_ROWS:-2000000}
dir=${DEMO_DIR:-build/demo}
proof_steps=200   # trained twice, through the tiers and in memory
record_bytes=256  # of demo.toml: 32 weights and as many numbers of AdaGrad's state
row_bytes=110     # of a compressed row on disk, about
log_buffers=$((10 << 20)) # the part of ddr_bytes that does not shrink with the rows

fail() { echo "demo: $*" >&2; exit 1; }
say() { printf '\n-- %s\n' "$*"; }
# A word of the last line of a run's metrics.
field() { sed -nE '$ s/.*"'"$2"'":"?([^,}"]*).*/\1/p' "$1/metrics.jsonl"; }
# A number of demo.toml for these rows instead of two million, and never less than $2.
scaled() { echo $(($1 * rows / 2000000 > $2 ? $1 * rows / 2000000 : $2)); }

if [ -n "$data" ]; then
  [ -f "$data" ] && [ -r "$data" ] || fail "cannot read $data"
  case $(head -c 2 "$data" | od -An -tx1) in
    *"1f 8b"*) rows=$(($(stat -Lc %s "$data") / row_bytes)) ;;
    *) rows=$(($(stat -Lc %s "$data") / 230)) ;;
  esac
  row_bytes=0
fi
batch=$(scaled 1024 64)
[ "$batch" -le 1024 ] || batch=1024
hbm=$(scaled $((22 << 20)) $((3 << 19)))
ddr=$(($(scaled $((90 << 20)) $((8 << 20))) + log_buffers))
ssd=$(scaled $((1280 << 20)) $((128 << 20)))

say "checking disk and memory"
[ ! -e "$dir" ] || [ -e "$dir/.demo" ] || [ -z "$(ls -A "$dir")" ] ||
  fail "$dir holds something else; name another folder by DEMO_DIR"
rm -rf "$dir" && mkdir -p "$dir" && touch "$dir/.demo"
need=$(((rows * row_bytes + 2 * ssd) >> 20))
have=$(df -Pm "$dir" | awk 'NR == 2 { print $4 }')
[ "$have" -ge "$need" ] || fail "$dir needs $need MiB of disk, $have are free"
need=$(scaled 2000 500)
have=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
[ "$have" -ge "$need" ] || fail "needs $need MiB of memory, $have are available"

if [ -n "$data" ]; then
  input=(--set "data.files=$data" --set "data.eval_fraction=1/7")
  ceiling="none is known for your own data"
else
  say "writing $rows rows of Criteo format"
  "$rowtide" synth criteo --rows "$rows" --files 7 --out "$dir/train.tsv.gz"
  files=$(printf "'$dir/train-%d.tsv.gz'," 0 1 2 3 4 5)
  input=(--set "data.files=[$files]" --set "data.eval_files=$dir/train-6.tsv.gz")
  ceiling=$(sed -nE 's/.*"auc": ([0-9.]{7}).*/\1 for the model that made the labels/p' "$dir/train-6.tsv.gz.truth.json")
fi

train() { # directory, then arguments
  "$rowtide" train "$config" "${input[@]}" --set "data.batch=$batch" \
    --set "run.digest=true" --set "run.directory=$dir/$1" "${@:2}"
}
tiers=(--set "tiers.hbm_bytes=$hbm" --set "tiers.ddr_bytes=$ddr"
  --set "tiers.ssd=[{directory='store', bytes=$ssd}]")

say "training $proof_steps steps through three tiers"
train run "${tiers[@]}" --steps "$proof_steps" >/dev/null
through_tiers=$(field "$dir/run" digest)

say "the same $proof_steps steps again, with all rows in the hot tier"
train memory --set "tiers.hbm_bytes=$((hbm * 20))" --set "tiers.ddr_bytes=$((ddr * 2))" \
  --set "tiers.ssd=[{directory='store', bytes=$ssd}]" --steps "$proof_steps" >/dev/null
[ "$(field "$dir/memory" rows_read_from_ssd)" = 0 ] || fail "the run in memory read from the SSD"
in_memory=$(field "$dir/memory" digest)
[ "$through_tiers" = "$in_memory" ] ||
  fail "the digests differ: $through_tiers through the tiers, $in_memory in memory"

say "going on to the end of the data"
train run "${tiers[@]}" --resume >"$dir/table"
written=$(($(field "$dir/run" rows_on_ssd) * record_bytes))
read_back=$(field "$dir/run" rows_read_from_ssd)

say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s"
sed -E "s|^(  AUC +[0-9.]+)|\1, the ceiling: $ceiling|" "$dir/table"
printf '  %-14s%s\n' "exact" "digest after $proof_steps steps $in_memory, through the tiers and in memory"
printf '  %-14s%s\n' "rows written" "$((written >> 20)) MiB, $((written / hbm)) times the hot tier and $((written / (hbm + ddr))) times hot and DDR"

# The user's own data may be small; ours must show what the demo is for.
[ -z "$data" ] || exit 0
[ "$rows" -ge 2000000 ] && log_buffers=0
[ $written -ge $((20 * hbm)) ] && [ $written -ge $((4 * (hbm + ddr - log_buffers))) ] ||
  fail "the rows ever written are too few for these budgets"
[ "$read_back" -ge "$(scaled 100000 0)" ] || fail "only $read_back rows were read back from the SSD"
