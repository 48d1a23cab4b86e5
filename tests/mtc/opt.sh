. "$(dirname "$0")/lib.sh"
# mtc opt: passes on a graph's text
"$MTC" dump tiny.mt > tiny.ir || exit 1
want 0 'fn micro(' opt tiny.ir --pass simplify,precision,autodiff
want 64 'mtc opt wants --pass=A,B' opt tiny.ir
want 64 "no pass 'simplfy'; did you mean 'simplify'?" opt tiny.ir --pass simplfy
want 66 'missing.ir' opt missing.ir --pass simplify
printf 'fn f(' > broken.ir
want 1 'error IR' opt broken.ir --pass simplify
want 1 "$(printf '\033[')" opt broken.ir --pass simplify --color=always
want 64 '--color is auto' opt tiny.ir --pass simplify --color=red
exit $status
