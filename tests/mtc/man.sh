# man.sh MTC.1 MTRUN.1 MTDATA.1 MTC MTRUN MTDATA -- the man pages are right, and have every option that --help has
status=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

wrong() { echo "$1"; status=1; }

plain() { # the page as text; what the formatter complains about goes to $folder/said
  if command -v man > /dev/null; then LC_ALL=C.UTF-8 MANWIDTH=200 man --warnings -l "$1" 2> "$folder/said" | col -bx
  elif command -v groff > /dev/null; then groff -man -ww -Tutf8 -P-c "$1" 2> "$folder/said" | sed 's/.\x08//g'
  else exit 77; fi
}

check() { # PAGE TOOL COMMAND…
  page=$1 tool=$2
  shift 2
  plain "$page" > "$folder/text" || exit 77
  [ ! -s "$folder/said" ] || { wrong "$page:"; cat "$folder/said"; }
  if command -v mandoc > /dev/null; then mandoc -Tlint -Werror "$page" || wrong "$page: mandoc complains"; fi
  grep -q '@' "$page" && grep -nE '@[A-Z]+@' "$page" && wrong "$page: a place was not filled"
  for section in NAME SYNOPSIS DESCRIPTION 'EXIT STATUS' FILES 'SEE ALSO'; do
    grep -qx "$section" "$folder/text" || wrong "$page: no section $section"
  done
  "$tool" --help > "$folder/help" || wrong "$tool --help fails"
  for command in "$@"; do
    grep -qF "$(basename "$tool") $command" "$folder/help" || wrong "$tool --help does not have $command"
    "$tool" "$command" --help >> "$folder/help" || wrong "$tool $command --help fails"
    grep -qE "^ +$(basename "$tool") $command " "$folder/text" || wrong "$page: no command $command"
  done
  # --name VALUE and -x, as --help shows them; its own option is told in words
  grep -oE '^ +(-[A-Za-z](, )?)?(--[a-z0-9-]+)?( [^ ]+)?' "$folder/help" | sed 's/^ *//; s/ *$//' | grep '^-' |
    sort -u > "$folder/options"
  [ "$(wc -l < "$folder/options")" -gt 5 ] || wrong "$tool: few options in its help"
  while read -r option; do
    case $option in -h*) continue ;; esac
    grep -qF -- "$option" "$folder/text" || wrong "$page: no option $option"
  done < "$folder/options"
  for code in 0 64 70; do grep -qE "^ +$code +" "$folder/text" || wrong "$page: no exit code $code"; done
}

check "$1" "$4" compile check dump explain interp opt verify doctor
check "$2" "$5"
check "$3" "$6" prepare inspect samples
exit $status
