#!/bin/sh
# demo.sh -- trains a small GPT-2 on the King James Bible, byte by byte, and lets it write.
#
#   sh models/demo.sh [STEPS]        1000 when not given
#
# Installs what is missing, builds, and takes a few minutes on two cores. Its files are in build/demo; run again, it goes
# on where it stopped.
cd "$(dirname "$0")/.." || exit 66
steps=${1:-1000}
case $steps in *[!0-9]*) sed -n '2,/^cd/s/^# \{0,1\}//p' "$0"; exit 64 ;; esac

step() { printf '\n\033[1m== %s\033[0m\n' "$1"; }
show() { echo "\$ $*"; "$@" || exit; }
[ -t 1 ] || step() { printf '\n== %s\n' "$1"; }

step '1/6 what is needed'
. tests/packages.sh
need_build
need 'bible-kjv bible-kjv-text' command -v bible
install_needed || exit 69
echo 'all there'

step '2/6 build'
[ -f build/build.ninja ] || show meson setup build
show ninja -C build mtc runtime/mtrun runtime/mtdata
mtc=build/mtc mtrun=build/runtime/mtrun mtdata=build/runtime/mtdata

step '3/6 text: a verse a line, without its number'
mkdir -p build/demo
text=build/demo/bible.txt
[ -s $text ] || { bible -f -l10000 'Genesis1:1-Revelation22:21' | sed 's/^[^ ]* //' > $text.part && mv $text.part $text; } || exit
wc $text

step '4/6 data: a verse a document, a byte a token'
[ -s build/demo/bible.idx ] || show $mtdata prepare --format lines $text -o build/demo/bible
show $mtdata inspect build/demo/bible

step '5/6 compile'
run=build/demo/$steps                                  # the order of samples depends on how many are wanted
mkdir -p "$run"
show $mtc compile models/gpt2.mt --preset demo --set train.steps="$steps" -o "$run"/gpt2.plan

step '6/6 train on the first 99 % of the verses, hold out the last 1 %'
began=$(date +%s)
show $mtrun "$run"/gpt2.plan --data build/demo/bible --split 990,10,0 --eval-every 200 --log-every 20 \
  --save "$run"/checkpoints --save-every 200 --keep 2 --resume auto --log-json "$run"/log.jsonl \
  --sample 'And God said' --tokens 400
loss=$(sed -n 's/.*"valid_loss":\([0-9.]*\).*/\1/p' "$run"/log.jsonl | tail -n 1)
[ -z "$loss" ] || printf '\nheld-out loss %.3f nats per byte, %s s of training\n' "$loss" $(($(date +%s) - began))
