fn A(x: [*]) -> [*] {
  return rename(x, seq -> kseq)
}
# ! rename_parens.mt:2:24: error MT0100: unexpected '->', expected ')' or '=' or ','
# !      2 |   return rename(x, seq -> kseq)
# !        |                        ^~
# !          dims are named in brackets before the arguments: rename[seq -> kseq](x)
