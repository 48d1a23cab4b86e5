# lib.sh -- for the tests of mtc: MTC is the program, ROOT the sources; everything happens in a folder of its own.
#
#   want STATUS WORDS ARG…   mtc ARG… exits with STATUS, and its output has a line that holds WORDS
MTC=$(realpath "$1") ROOT=$2 status=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

want() {
  code=$1 words=$2
  shift 2
  "$MTC" "$@" > out 2> err < /dev/null
  got=$?
  if [ $got != "$code" ]; then echo "mtc $*: exit $got, wanted $code"; head -5 err; status=1; fi
  if [ -n "$words" ] && ! cat out err | grep -qF -- "$words"; then echo "mtc $*: no '$words' in"; cat out err | head -8; status=1; fi
}

cat > tiny.mt <<'MT'
config { hidden = 4; layers = 2 }
preset wide { hidden = 8; train.steps = 7 }
dim batch
dim seq = 4
dim embed = hidden
dim ff = 2 * hidden
block MLP(x: [batch, seq, embed]) -> [batch, seq, embed] {
  h = gelu(Linear[embed, ff](x) as up)
  return Linear[ff, embed](h) as down
}
model Tiny(x: [batch, seq, embed], y: [batch, seq, embed]) -> (loss: f32[], out: [batch, seq, embed]) {
  repeat layers as i { x = x + MLP(x) as "h.{i}" }
  out = x
  loss = mean[batch, seq, embed]((out - y) ^ 2)
}
parallel { map batch -> dp; map ff -> tp; map weak seq -> tp }
train { micro_batch = 2; global_batch = 4; steps = 3 }
MT
