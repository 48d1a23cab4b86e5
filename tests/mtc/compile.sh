. "$(dirname "$0")/lib.sh"
# mtc compile: where the plan goes, and what is refused
want 0 '' compile tiny.mt --no-objects
[ -s tiny.plan ] || { echo "no tiny.plan"; status=1; }
want 0 '' compile tiny.mt --no-objects -o other.plan
cmp tiny.plan other.plan || { echo "the same text gives another plan"; status=1; }
want 0 '' compile tiny.mt --no-objects --no-fuse --output=apart.plan
cmp -s tiny.plan apart.plan && { echo "--no-fuse changes nothing"; status=1; }
want 0 '' compile tiny.mt --no-objects --device cpu --set train.steps=9 -o nine.plan
cmp -s tiny.plan nine.plan && { echo "--set changes nothing"; status=1; }
want 69 '--device cuda' compile tiny.mt --device cuda
want 0 '' compile tiny.mt --no-objects --mesh dp=2,tp=2 -o mesh.plan
want 0 'nothing wrong' verify mesh.plan
want 0 'collectives in one order on all of them' verify mesh.plan
want 69 'mesh pp=2' compile tiny.mt --mesh pp=2
want 1 'error MT0301' compile tiny.mt -D hiden=3 -o never.plan
[ ! -e never.plan ] || { echo "a plan in spite of errors"; status=1; }
want 64 "is the model's own file" compile tiny.mt -o tiny.mt --no-objects
want 66 'missing.mt' compile missing.mt
"$MTC" compile tiny.mt --no-objects -o no/such/folder.plan 2> err; [ $? -ge 66 ] || { echo "a folder that is not there"; status=1; }
exit $status
