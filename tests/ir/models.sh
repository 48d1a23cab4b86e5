#!/bin/sh
# models.sh MTC FOLDER -- the models' graphs, after lowering and after every pass, read back to the same bytes and draw
mtc=$1 folder=$2
status=0 options="--preset demo --mesh dp=2,tp=2 --set train.micro_batch=4"
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT
for model in gpt2 llama bert moe; do
  for pass in lower simplify precision autodiff optimizer layout reshard; do
    "$mtc" dump "$folder/$model.mt" $options --after=$pass > "$temp/a" || { echo "$model, $pass: no text"; status=1; }
    "$mtc" opt "$temp/a" --pass= > "$temp/b" || { echo "$model, $pass: not read back"; status=1; }
    cmp "$temp/a" "$temp/b" || { echo "$model, $pass: read back otherwise"; status=1; }
  done
  "$mtc" dump "$folder/$model.mt" $options --after=reshard --dot --fn micro > "$temp/dot" || { echo "$model: no picture"; status=1; }
  grep -q 'label="layer' "$temp/dot" || { echo "$model: no layers"; status=1; }
  if [ -n "$DOT" ]; then "$DOT" -Tsvg "$temp/dot" > "$temp/svg" || { echo "$model: not drawn"; status=1; }; fi
done
exit $status
