. "$(dirname "$0")/lib.sh"
# mtc explain: the program, a name, a message
want 0 'Tiny (tiny.mt:11:1)' explain tiny.mt
want 0 'parameters   152 in 8 tensors; weight decay on 128, in 4 of 8' explain tiny.mt
want 0 'loss f32[], averaged over the step' explain tiny.mt
want 0 'step         4 samples: 2 microbatches of 2' explain tiny.mt
want 0 'dp = 2, ep = 1, cp = 1, tp = 2: 4 ranks' explain tiny.mt --mesh dp=2,tp=2
want 0 'h.*.down.weight:grad' explain tiny.mt --mesh dp=2
want 0 'in a step of 2 microbatches, on a rank' explain tiny.mt --mesh tp=2
want 0 'tp     of 2' explain tiny.mt --mesh tp=2
want 0 'output at tiny.mt:11:' explain tiny.mt loss
want 0 'dim ff, at tiny.mt:6:1: 8' explain tiny.mt ff
want 0 'rule: ff -> tp' explain tiny.mt ff
want 0 'config hidden = 8, from preset wide' explain tiny.mt --preset wide hidden
want 0 'config hidden = 5, from -D' explain tiny.mt -D hidden=5 hidden
want 0 'here: 7' explain tiny.mt --preset wide train.steps
want 0 'here: 0.001' explain tiny.mt train.optimizer.lr
want 0 'parameter, at tiny.mt:8:12' explain tiny.mt h.0.up.weight
want 0 'return 0.5 * x * (1 + tanh(' explain tiny.mt gelu
want 0 'block, at tiny.mt:7:1' explain tiny.mt MLP
want 0 'primitive: gather[d](x, index)' explain tiny.mt gather
want 0 'tiny.mt:14:' explain tiny.mt 14
want 0 'micro:' explain tiny.mt %3
want 0 'in h.1' explain tiny.mt h.1
want 0 'forward:' explain tiny.mt --after lower %3
want 0 'parallel.recompute = selective(attention): no effect yet' explain "$ROOT/models/gpt2.mt" --preset demo
want 0 'selective(names), auto(budget); no effect yet' explain tiny.mt parallel.recompute
want 0 'layers between two that are kept; no effect yet' explain tiny.mt parallel.recompute.every
want 0 'parameters ' explain tiny.mt
if grep -q 'no effect' out; then echo 'explain: what is not said has no effect'; status=1; fi
want 0 'note: parallel.recompute has no effect yet' check tiny.mt --set 'parallel.recompute=full(every = 2)'
want 0 'note: parallel.pipeline has no effect yet' check "$ROOT/models/gpt2.mt" --preset demo --set parallel.pipeline.cut=balanced
want 0 'no errors' check "$ROOT/models/gpt2.mt" --preset demo
if grep -q 'no effect' err; then echo 'check: a note at what the text says'; status=1; fi
want 64 "did you mean 'embed'?" explain tiny.mt embd
want 64 "did you mean 'parallel.zero'?" explain tiny.mt zero
want 64 "did you mean 'train.schedule.warmup'?" explain tiny.mt warmup
want 64 "nothing is called 'xyzzyx'" explain tiny.mt xyzzyx
want 0 'contracts the one dim that both share' explain MT0203
want 0 'contracts the one dim that both share' explain tiny.mt MT0203
want 64 "no message 'MT9999'" explain MT9999
want 64 'usage: mtc explain' explain
want 66 'missing.mt' explain missing.mt
# each entry is found
for code in $(sed -n 's/^### \(MT[0-9]*\)$/\1/p' "$ROOT/grammar/ERRORS.md"); do
  [ "$("$MTC" explain "$code" | head -1)" = "$code" ] || { echo "mtc explain $code"; status=1; }
done
exit $status
