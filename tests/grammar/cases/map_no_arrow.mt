parallel {
  map batch dp
  map heads -> tp
}
# ! map_no_arrow.mt:2:13: error MT0100: unexpected 'dp', expected '->' or ','
# !      2 |   map batch dp
# !        |             ^~
# !          it is written like this: map heads, ff -> tp
