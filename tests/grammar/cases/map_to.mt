parallel {
  map seq to tp
  zero 1
}
# ! map_to.mt:2:11: error MT0100: unexpected 'to', expected '->' or ','
# !      2 |   map seq to tp
# !        |           ^~
# !          it is written like this: map heads, ff -> tp
# ! map_to.mt:3:8: error MT0100: unexpected '1', expected '='
# !      3 |   zero 1
# !        |        ^
