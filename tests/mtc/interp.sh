. "$(dirname "$0")/lib.sh"
# mtc interp: what is refused; what it computes is tested against recorded runs
want 66 'missing.st' interp tiny.mt --batches missing.st
want 66 'missing.st' interp tiny.mt --init missing.st --batches missing.st
want 64 'not a whole number' interp tiny.mt --steps many
want 64 '--steps -1 is too small: at least 0' interp tiny.mt --steps -1
want 1 'error MT0301' interp tiny.mt -D hiden=3
want 66 'missing.mt' interp missing.mt
# --log-json -: the log is all of standard output, the steps are told beside it
header='{"x":{"dtype":"F32","shape":[2,2,2,4,4],"data_offsets":[0,512]},"y":{"dtype":"F32","shape":[2,2,2,4,4],"data_offsets":[512,1024]}}'
{ printf "\\$(printf %03o ${#header})"; head -c 7 /dev/zero; printf %s "$header"; head -c 1024 /dev/zero; } > zeros.st
want 0 'step    1  loss 0' interp tiny.mt --steps 2 --batches zeros.st --log-json -
[ "$(grep -c '^{"step": .*}$' out)" = 2 ] && [ "$(wc -l < out)" = 2 ] || { echo "--log-json -: standard output holds"; cat out; status=1; }
[ ! -e ./- ] || { echo "--log-json -: a file called -"; status=1; }
want 0 'step    1  loss 0' interp tiny.mt --steps 2 --batches zeros.st --log-json log
cat out err | grep '{' && { echo "--log-json log: JSON is printed"; status=1; }
[ "$(grep -c '^{"step": .*}$' log)" = 2 ] || { echo "--log-json log: the file holds"; cat log; status=1; }
exit $status
