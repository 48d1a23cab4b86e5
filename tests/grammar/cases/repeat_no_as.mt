fn A(x: [*]) -> [*] {
  repeat 4 {
    x = x + 1
  }
  return x
}
# ! repeat_no_as.mt:2:12: error MT0100: unexpected '{', expected 'as'
# !      2 |   repeat 4 {
# !        |            ^
# !          it is written like this: repeat layers as i { … }
