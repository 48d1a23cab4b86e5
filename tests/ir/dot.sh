#!/bin/sh
# dot.sh PROGRAM FOLDER -- what the pictures hold, and that graphviz draws them without a word
program=$1 folder=$2
status=0
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT

draw() {  # its name, then the program's arguments
  name=$1; shift
  "$program" "$@" > "$temp/$name.dot" || { echo "$name: not printed"; status=1; }
  if [ -n "$DOT" ]; then
    said=$("$DOT" -Tsvg "$temp/$name.dot" 2>&1 > "$temp/$name.svg") || { echo "$name: refused"; status=1; }
    [ -z "$said" ] || { echo "$name: $said"; status=1; }
  fi
}
count() {  # name, pattern, how often
  n=$(grep -cF -- "$2" "$temp/$1.dot")
  [ "$n" = "$3" ] || { echo "$1: '$2' is there $n times, not $3"; status=1; }
}

draw all "$folder/all.ir"
count all 'shape=hexagon' 2
count all 'cluster_1 ' 0                                # bodies are not drawn by themselves
draw body "$folder/all.ir" fn softmax.1
count body 'label="reduce_max[seq]"' 1
draw layers "$folder/layers.ir"
count layers 'layers 0–3 ×4' 1
count layers 'label="tanh' 1
count layers 'style=dashed, constraint=false' 1
count layers 'label="read\nh.0.say \\\"hi"' 1
draw unfolded "$folder/layers.ir" unfold
count unfolded 'label="tanh' 4
draw one "$folder/layers.ir" layer 2
count one 'label="tanh' 1
count one 'label="dot' 1
count one 'label="layer 2"' 1
for seed in 1 2 3 4 5 6; do draw "random$seed" random $seed; done
exit $status
