. "$(dirname "$0")/lib.sh"
# the command line as a whole
want 64 'usage: mtc COMMAND'
want 0 'Exit codes' --help
want 0 'Exit codes' help
want 0 'usage: mtc dump' help dump
want 0 'usage: mtc dump' dump --help
want 0 'usage: mtc check' check -h tiny.mt
want 0 '  --layer N         with --dot: only layer N (from 0)' dump --layer 3 --help
if grep -q 'default 3' out; then echo 'mtc dump --help takes what is given for a default'; status=1; fi
want 0 'mtc ' --version
want 64 "did you mean 'check'?" chekc tiny.mt
want 64 'did you mean mtc check tiny.mt?' tiny.mt
want 64 'did you mean mtc explain MT0203?' MT0203
want 64 'see mtc --help' nothing
want 64 "did you mean 'dump'?" help dumb
want 0 'softmax' --list-ops
for class in - map row gemm scatter tile coll; do
  grep -Eq "^  [a-z_]+ +(any|[0-9]) +(any|[0-9]) +$class " out || { echo "--list-ops: no operation of class $class"; status=1; }
done
want 0 'rename[a -> b](x)' --list-ops
want 0 'autodiff' --list-passes
want 0 'train.optimizer' --list-settings
for path in parallel.pipeline parallel.recompute; do
  grep -q "^  $path .*; no effect yet$" out || { echo "--list-settings: $path has an effect"; status=1; }
done
[ "$(grep -c 'no effect yet' out)" = 2 ] || { echo "--list-settings: more has no effect"; status=1; }
want 64 'usage: mtc check MODEL.mt' check
want 64 'usage: mtc check MODEL.mt' check tiny.mt tiny.mt
want 64 'did you mean --mesh?' check tiny.mt --mash dp=2
want 64 '--mesh needs a value' check tiny.mt --mesh
want 64 'unknown option -x' check tiny.mt -x
want 64 'did you mean --preset?' check tiny.mt -preset demo
echo 'mt plan 1' > tiny.plan
want 65 'tiny.plan: it is a plan; mtrun takes it' check tiny.plan
# each command's help: what it does, and examples of it
for command in compile check dump explain interp opt verify doctor; do
  want 0 "mtc $command" "$command" --help
  [ "$(grep -c "^  mtc $command" out)" -ge 2 ] || { echo "mtc $command --help has fewer than two examples"; status=1; }
done
exit $status
