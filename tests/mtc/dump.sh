. "$(dirname "$0")/lib.sh"
# mtc dump: what is printed, and read back
want 0 'fn forward(' dump tiny.mt
want 0 'fn micro(' dump tiny.mt --after autodiff
want 0 'fn forward(' dump tiny.mt --after=lower
want 0 'all_reduce' dump tiny.mt --after=reshard --mesh dp=2,tp=2
want 64 "did you mean 'autodiff'?" dump tiny.mt --after autodif
want 64 '--after names one pass' dump tiny.mt --after layout,reshard
want 0 'fn eval(' dump tiny.mt --fn eval
grep -q 'fn forward' out && { echo "--fn eval prints forward"; status=1; }
want 64 "did you mean 'micro'?" dump tiny.mt --after=autodiff --fn mikro
want 0 'digraph' dump tiny.mt --dot
want 0 'digraph' dump tiny.mt --dot --fn forward --unfold
want 0 'digraph' dump tiny.mt --dot --fn forward --layer 1
want 0 'attention' dump "$ROOT/models/gpt2.mt" --preset demo --after=reshard --mesh tp=2 --dot --fn micro
! grep -q '(null)' out || { echo "an operation without a look: (null)"; status=1; }
want 64 'go with --dot' dump tiny.mt --unfold
want 64 'go with --dot' dump tiny.mt --layer 1
want 64 'not a whole number' dump tiny.mt --dot --layer one
want 64 '--layer -1 is too small: at least 0' dump tiny.mt --dot --layer -1
want 64 'one of --steps, --params and --dot' dump tiny.mt --dot --params
want 0 'h.1.down.weight                              [4, 8] = [embed 4, ff 8] ~ normal(0.02), decays' dump tiny.mt --params
want 0 'h.0.up.bias                                  [8] = [ff 8] ~ zeros' dump tiny.mt --params
want 0 'experts.1.w3.weight' dump "$ROOT/models/moe.mt" --preset demo --params
want 64 '--steps are those after the last pass' dump tiny.mt --steps --after layout
# what is printed is read, and printed the same
for pass in lower simplify precision autodiff optimizer layout reshard shard select chunk; do
  "$MTC" dump tiny.mt --after $pass --mesh dp=2,tp=2 > a.ir || status=1
  "$MTC" opt a.ir --pass simplify > b.ir || { echo "opt does not read what dump printed after $pass"; status=1; }
done
exit $status
