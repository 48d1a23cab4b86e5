#!/bin/sh
# demo.sh -- trains a small GPT-2 on the King James Bible, byte by byte, and lets it write.
#
#   sh models/demo.sh [STEPS]        20 and more; 1000 when not given
#
# Installs what is missing, builds, and takes a few minutes on two cores. Lines that begin with $ are the commands that
# it runs, in this folder; they can be repeated by hand. Its files are in build/demo; run again, it goes on where it
# stopped.
cd "$(dirname "$0")/.." || exit 66
steps=${1:-1000}
case $steps in *[!0-9]* | 0* | ? | 1?) sed -n '2,/^cd/{/^cd/!s/^# \{0,1\}//p;}' "$0"; exit 64 ;; esac

bold= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
  bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi
number=0
step() { number=$((number + 1)); printf '\n%s== %s/6 %s%s\n' "$bold" $number "$1" "$plain"; }
show() { printf '%s$ %s%s\n' "$bold" "$1" "$plain"; eval "$1" || exit; }     # what is shown is what runs

step 'packages: what is needed, from the system'
. tests/packages.sh
need_build
need 'bible-kjv bible-kjv-text' command -v bible
install_needed || exit 69
echo 'all there'

step 'build: mtc, mtrun and mtdata'
[ -f build/build.ninja ] || show 'meson setup build'
show 'ninja -C build mtc runtime/mtrun runtime/mtdata'
show 'build/mtc doctor'

step 'data: a verse is a document, a byte is a token'
show 'mkdir -p build/demo'
text=build/demo/bible.txt
[ -s $text ] ||
  show "bible -f -l10000 Genesis1:1-Revelation22:21 | sed 's/^[^ ]* //' > $text.part && mv $text.part $text"
[ -s build/demo/bible.idx ] || show "build/runtime/mtdata prepare --format lines $text -o build/demo/bible"
show 'build/runtime/mtdata inspect build/demo/bible'

step 'compile: the model and its settings to a plan'
run=build/demo/$steps                                  # the order of samples depends on how many are wanted
show "mkdir -p $run"
show "build/mtc compile models/gpt2.mt --preset demo --set train.steps=$steps -o $run/gpt2.plan"

step 'train: on the first 99 % of the verses, with a look at the last 1 %'
began=$(date +%s)
show "build/runtime/mtrun $run/gpt2.plan --data build/demo/bible --split 990,10,0 --eval-every 200 --log-every 20 \\
    --save $run/checkpoints --save-every 200 --keep 2 --resume auto \\
    --final $run/model.safetensors --log-json $run/log.jsonl"
loss=$(sed -n 's/.*"valid_loss":\([0-9.]*\).*/\1/p' "$run"/log.jsonl | tail -n 1)
[ -z "$loss" ] || printf '\nheld-out loss %.3f nats per byte, %s s of training\n' "$loss" $(($(date +%s) - began))

step 'sample: the model writes'
show "build/runtime/mtrun $run/gpt2.plan --init $run/model.safetensors --sample 'And God said' --tokens 400"
