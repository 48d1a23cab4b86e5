#!/bin/sh
# codes.sh -- every code of the sources has an entry in ERRORS.md and a test; entries stand in order, once.
cd "$1" || exit 1
status=0
for code in $(grep -oh '"MT[0-9][0-9][0-9][0-9]"' grammar/*.c grammar/*.l grammar/*.y compiler/*.c passes/*.c | tr -d '"' | sort -u); do
  grep -q "^### $code\$" grammar/ERRORS.md || { echo "$code has no entry in grammar/ERRORS.md"; status=1; }
  grep -qr "$code" tests --include='*.c' --include='*.mt' --include='*.ir' --include='*.sh' || { echo "$code has no test in tests"; status=1; }
done
grep -o '^### MT[0-9]*' grammar/ERRORS.md > "${TMPDIR:-/tmp}/codes.$$"
sort -uc "${TMPDIR:-/tmp}/codes.$$" || status=1
rm -f "${TMPDIR:-/tmp}/codes.$$"
exit $status
