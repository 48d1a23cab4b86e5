#!/bin/sh
# run.sh -- builds mt and runs its tests; the last line says `N passed, N failed`.
usage='usage: sh tests/run.sh [--long] [--sanitize | --tsan] [--clang] [--werror] [TEST…]

  --long       more of everything that is random, for hours
  --sanitize   built with the address and the undefined-behaviour sanitizer
  --tsan       built with the thread sanitizer; without TEST, the tests in which ranks are threads
  --clang      built with clang
  --werror     a warning fails the build
  TEST         only these tests or suites, as `meson test` takes them'

long= sanitize= tsan= build=build setup= werror=false
while [ $# -gt 0 ]; do
  case $1 in
    --long) long=1 ;;
    --sanitize) sanitize=1 build=$build-sanitize setup="$setup -Db_sanitize=address,undefined -Db_lundef=false" ;;
    --tsan) tsan=1 build=$build-tsan setup="$setup -Db_sanitize=thread -Db_lundef=false" ;;
    --clang) export CC=clang; build=$build-clang ;;
    --werror) werror=true ;;
    -h | --help) echo "$usage"; exit 0 ;;
    -*) echo "$usage" >&2; exit 64 ;;
    *) break ;;
  esac
  shift
done
cd "$(dirname "$0")/.." || exit 66

. tests/packages.sh
need_build
need_mpi
need graphviz command -v dot
[ "${CC:-}" != clang ] || need clang command -v clang

give_up() { echo "$1"; echo '0 passed, 1 failed'; exit 1; }

install_needed || give_up 'packages are missing'
if [ ! -f "$build/build.ninja" ]; then
  # shellcheck disable=SC2086  # a list of options
  meson setup "$build" -Dwerror=$werror $setup || give_up 'meson found something missing'
else
  meson configure "$build" -Dwerror=$werror || give_up "delete $build and try again"
fi
built=
[ -z "$tsan" ] || [ $# -gt 0 ] || built='mtc runtime/mtrun runtime/mtdata'
# shellcheck disable=SC2086  # a list of targets
ninja -k 0 -C "$build" $built || give_up 'the build failed'

# The kernels that tests compile are kept with the build, and shared by all configurations.
mkdir -p build
export XDG_CACHE_HOME="$PWD/build/cache"
export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1
[ -z "$long" ] || export MT_LONG=1
[ -z "$tsan" ] || [ $# -gt 0 ] || set -- --suite races
patience=4
[ -z "$sanitize$tsan" ] || patience=20
rm -f "$build"/meson-logs/testlog.json "$build"/meson-logs/benchmarklog.json
meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier $patience "$@"
[ -z "$long" ] || meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier $patience --benchmark "$@"

python3 - "$build"/meson-logs/testlog.json "$build"/meson-logs/benchmarklog.json << 'END'
import json, os, sys

results = [json.loads(line) for path in sys.argv[1:] if os.path.exists(path) for line in open(path)]
count = {True: 0, False: 0, "SKIP": 0}
for result in results:
    count["SKIP" if result["result"] == "SKIP" else result["result"] in ("OK", "EXPECTEDFAIL")] += 1
for result in results:
    if result["result"] not in ("OK", "EXPECTEDFAIL", "SKIP"):
        print("failed:", result["name"], "(%s)" % result["result"].lower())
print("%d passed, %d failed" % (count[True], count[False]) + (", %d skipped" % count["SKIP"] if count["SKIP"] else ""))
sys.exit(0 if count[True] and not count[False] else 1)
END
