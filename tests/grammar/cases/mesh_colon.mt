parallel {
  mesh dp: 2, tp: 2
  map heads -> tp
}
# ! mesh_colon.mt:2:10: error MT0100: unexpected ':', expected '='
# !      2 |   mesh dp: 2, tp: 2
# !        |          ^
# !          it is written like this: mesh dp = 2, tp = 2
