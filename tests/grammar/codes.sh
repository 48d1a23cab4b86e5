#!/bin/sh
# codes.sh -- every code of a message has an entry in ERRORS.md, the grammar's have a test; entries stand in order, once.
cd "$1" || exit 1
status=0
codes() { grep -oh '"MT[0-9]*"' "$@" | tr -d '"' | sort -u; }
for code in $(codes grammar/*.[cly] compiler/*.c passes/*.c runtime/*.c); do
  grep -q "^### $code\$" grammar/ERRORS.md || { echo "$code has no entry in grammar/ERRORS.md"; status=1; }
done
for code in $(codes grammar/*.[cly]); do
  grep -qr "$code" tests/grammar --include='*.c' --include='*.mt' || { echo "$code has no test in tests/grammar"; status=1; }
done
grep -o '^### MT[0-9]*' grammar/ERRORS.md > "${TMPDIR:-/tmp}/codes.$$"
sort -uc "${TMPDIR:-/tmp}/codes.$$" || status=1
rm -f "${TMPDIR:-/tmp}/codes.$$"
exit $status
