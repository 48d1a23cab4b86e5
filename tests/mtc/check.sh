. "$(dirname "$0")/lib.sh"
# mtc check: every option of a model, in order, and the exit codes
want 0 'tiny.mt: 8 parameters' check tiny.mt
want 0 'tiny.mt: 4 parameters' check tiny.mt -D layers=1
want 0 'tiny.mt: 4 parameters' check -D layers=3 tiny.mt -Dlayers=1 --preset wide
want 0 'tiny.mt: 8 parameters' check tiny.mt --set train.steps=9 --set 'train.optimizer=sgd(lr = 0.5)'
want 0 'tiny.mt: 8 parameters' check tiny.mt --mesh=dp=2,tp=4
want 0 'tiny.mt: 8 parameters' check tiny.mt --map 'weak embed -> cp' --mesh cp=2
want 0 'tiny.mt: 8 parameters' check tiny.mt --no-map seq --mesh tp=2
want 0 'tiny.mt: 8 parameters' check tiny.mt --skip simplify
want 0 'tiny.mt: 8 parameters' check -- tiny.mt
printf 'parallel { zero = }\n' > bad.mtp
printf 'parallel {\n mesh dp = 2\n}\ntrain {\n global_batch = 8\n}\n' > two.mtp
want 0 'tiny.mt: 8 parameters' check tiny.mt --parallel two.mtp
want 1 'error MT0' check tiny.mt --parallel bad.mtp
want 66 'missing.mtp' check tiny.mt --parallel missing.mtp
want 1 'ff = 8 is not divisible by tp = 3; legal tp: 1, 2, 4, 8' check tiny.mt --mesh tp=3
want 1 'heads = 25 is not divisible by tp = 2; legal tp: 1, 5, 25' check "$ROOT/models/gpt2.mt" --preset xl --mesh tp=2
want 1 'or pad it: dim heads = … pad 2 stores 26 entries' check "$ROOT/models/gpt2.mt" --preset xl --mesh tp=2
sed 's/ pad 128//' "$ROOT/models/gpt2.mt" > unpadded.mt
want 1 'or pad it: dim vocab = … pad 128 stores 50304 entries' check unpadded.mt --mesh tp=2
want 1 'or pad it: dim vocab = … pad 2 stores 258 entries' check unpadded.mt --preset demo --mesh tp=2
sed 's/ nvocab pad 128/ nvocab pad 2/' "$ROOT/models/gpt2.mt" > padded.mt
want 0 'no errors' check padded.mt --preset demo --mesh tp=2
want 1 'kv = 2 is not divisible by tp = 4; legal tp: 1, 2' check "$ROOT/models/llama.mt" --preset demo --mesh tp=4
if grep -q 'pad' err; then echo 'check: padding that doubles a dim is offered'; status=1; fi
want 0 'no errors' check "$ROOT/models/llama.mt" --preset demo -D nkv=1 --mesh tp=4 --no-map kv --map 'group -> tp'
want 1 "'vocab' and 'embed' meet in 'wte.weight' and both map to tp" check "$ROOT/models/gpt2.mt" --preset demo --mesh tp=2 --map 'embed -> tp'
want 1 'their product may be 1, 2' check tiny.mt --mesh dp=3 --set train.global_batch=2
want 1 'error MT0301: no config' check tiny.mt -D hiden=3
want 1 "did you mean 'hidden'?" check tiny.mt -D hiden=3
want 1 'error MT0302' check tiny.mt --preset wid
want 1 "did you mean 'train.steps'?" check tiny.mt --set train.step=3
want 1 'error MT0315' check tiny.mt --no-map sec
want 1 'error MT0334' check tiny.mt --mesh dp=3
want 64 "no pass 'simplfy'; did you mean 'simplify'?" check tiny.mt --skip simplfy
want 64 "pass 'autodiff' cannot be left out" check tiny.mt --skip autodiff
want 66 'missing.mt' check missing.mt
want 65 'not a regular file' check .
: > empty.mt
want 1 'error MT0343' check empty.mt
printf 'dim batch\nmodel M(x: [batch]) -> (loss: f32[]) { loss = meen[batch](x) }\n' > wrong.mt
want 1 "wrong.mt:2:47: error MT0222: no function 'meen'" check wrong.mt
want 1 "did you mean 'mean'?" check wrong.mt
want 1 "$(printf '\33[1;31merror')" check --color always wrong.mt
want 1 'wrong.mt:2:47: error' check --color=never wrong.mt
want 64 '--color is auto, always or never' check --color=yes wrong.mt
"$MTC" check - < tiny.mt > out 2>&1 && grep -q '8 parameters' out || { echo "standard input"; cat out; status=1; }
"$MTC" check - < wrong.mt > out 2>&1; [ $? = 1 ] && grep -q '(standard input):2:47' out || { echo "an error on standard input"; cat out; status=1; }
"$MTC" check tiny.mt > /dev/full 2> err; [ $? = 74 ] || { echo "a full disk"; status=1; }
mkdir -p parts && printf 'fn twice(x: [*]) -> [*] { return 2 * x }\n' > parts/a.mt
printf 'import "parts/a.mt"\ndim batch\nmodel M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](twice(x)) }\n' > main.mt
want 0 'main.mt: 0 parameters' check main.mt
(cd parts && "$MTC" check ../main.mt > out 2>&1) || { echo "an import is found beside the text"; status=1; }
exit $status
