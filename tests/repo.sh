#!/bin/sh
# repo.sh FOLDER CC -- what holds for the repository as a whole: its top level, which way includes point, that headers compile
# alone, that no source is too long, that no machine's paths and no package hosts are written down.
cd "$1" || exit 1
cc=$2
status=0
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT

# what belongs to the repository: git's list, or every file where this is no checkout
if [ -e .git ] && git -c safe.directory='*' ls-files > "$temp/files" 2> /dev/null; then :; else
  find . -type f ! -path './build*' ! -path './.git/*' | sed 's,^\./,,' > "$temp/files"
fi
while read -r f; do [ ! -f "$f" ] || echo "$f"; done < "$temp/files" > "$temp/tracked"

sed 's,/.*,,' "$temp/tracked" | sort -u | while read -r name; do
  case $name in
    meson.build | meson_options.txt | README.md | LICENSE | .ci | .gitignore | .editorconfig | .clang-format) ;;
    grammar | compiler | passes | runtime | models | tests | bench) ;;
    *) echo "$name does not belong on the top level" ;;
  esac
done > "$temp/said"

# runtime <- grammar <- compiler <- passes <- compiler/main.c: to the left, and from the root
level() {
  case $1 in
    runtime/*) echo 1 ;; grammar/*) echo 2 ;; compiler/main.c) echo 5 ;; compiler/*) echo 3 ;; passes/*) echo 4 ;; *) echo 6 ;;
  esac
}
grep -E '^(runtime|grammar|compiler|passes)/.*\.(c|h|l|y|def)$' "$temp/tracked" > "$temp/sources"
while read -r f; do
  lines=$(wc -l < "$f")
  [ "$lines" -lt 1200 ] || echo "$f has $lines lines; 1,200 are the most" >> "$temp/said"
  sed -n 's/^# *include *"\([^"]*\)".*/\1/p' "$f" > "$temp/includes"
  while read -r include; do
    case $include in
      runtime/* | grammar/* | compiler/* | passes/*)
        [ "$(level "$include")" -le "$(level "$f")" ] || echo "$f includes $include, which stands to its right" >> "$temp/said" ;;
      *) echo "$f includes \"$include\", not written from the root" >> "$temp/said" ;;
    esac
  done < "$temp/includes"
done < "$temp/sources"

grep '\.h$' "$temp/sources" | while read -r header; do
  echo "#include \"$header\"" > "$temp/alone.c"
  "$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror -D_GNU_SOURCE -I . -fsyntax-only "$temp/alone.c" > "$temp/error" 2>&1 ||
    { echo "$header does not compile alone:"; head -n 5 "$temp/error"; }
done >> "$temp/said"

# spelt so that these lines do not find themselves
paths='/work''/|/home''/|/root''/|/mnt''/|/Users''/'
hosts='deb\.debian''\.org|pypi''\.org|pythonhosted''\.org|registry\.npmjs''|proxy\.golang''|ghcr''\.io|docker''\.io'
grep -v '\.safetensors$\|^LICENSE$' "$temp/tracked" | tr '\n' '\0' | xargs -0 grep -nIE "$paths|$hosts" >> "$temp/said"

if [ -s "$temp/said" ]; then cat "$temp/said"; status=1; fi
exit $status
