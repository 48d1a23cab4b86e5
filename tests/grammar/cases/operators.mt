config {
  a = 1 || 2
  require !a
  b = 1 %= 2
  c = a++
  d = --a
  e = 1 /* no */
  f = a ^= 2
}
# ! operators.mt:2:9: error MT0005: write 'or'
# !      2 |   a = 1 || 2
# !        |         ^~
# ! operators.mt:3:11: error MT0005: write 'not'
# !      3 |   require !a
# !        |           ^
# ! operators.mt:4:9: error MT0005: there is no '%='; write x = x % …
# !      4 |   b = 1 %= 2
# !        |         ^~
# ! operators.mt:5:8: error MT0005: there is no '++'; write x = x + 1, or a blank between
# !      5 |   c = a++
# !        |        ^~
# ! operators.mt:6:7: error MT0005: there is no '--'; write x = x - 1, or a blank between
# !      6 |   d = --a
# !        |       ^~
# ! operators.mt:7:9: error MT0004: a comment starts with #, and ends with its line
# !      7 |   e = 1 /* no */
# !        |         ^~
# ! operators.mt:8:9: error MT0005: there is no '^='; write x = x ^ …
# !      8 |   f = a ^= 2
# !        |         ^~
