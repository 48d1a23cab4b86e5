. "$(dirname "$0")/lib.sh"
# mtc interp: what is refused; what it computes is tested against recorded runs
want 66 'missing.st' interp tiny.mt --batches missing.st
want 66 'missing.st' interp tiny.mt --init missing.st --batches missing.st
want 64 'not a whole number' interp tiny.mt --steps many
want 64 '--steps -1 is too small: at least 0' interp tiny.mt --steps -1
want 1 'error MT0301' interp tiny.mt -D hiden=3
want 66 'missing.mt' interp missing.mt
exit $status
