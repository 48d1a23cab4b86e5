config {
  a = 1e999
  b = 1e-999
  c = 9007199254740993
  d = 9007199254740992
  e = 9007199254740993.0
  f = 4e300 TiB
  h = 018014398509481984
  i = 18014398509481985
  j = 340282366920938463463374607431768211456
  g = 1.5 KiB
}
# ! number_range.mt:2:7: error MT0006: 1e999 is too large; a number is at most 1.8e308
# !      2 |   a = 1e999
# !        |       ^~~~~
# ! number_range.mt:3:7: error MT0006: 1e-999 is too small; the smallest number above 0 is 2.2e-308
# !      3 |   b = 1e-999
# !        |       ^~~~~~
# ! number_range.mt:4:7: error MT0006: 9007199254740993 is not exact; whole numbers are exact to 2^53
# !      4 |   c = 9007199254740993
# !        |       ^~~~~~~~~~~~~~~~
# ! number_range.mt:7:7: error MT0006: 4e300 TiB is too large; a number is at most 1.8e308
# !      7 |   f = 4e300 TiB
# !        |       ^~~~~~~~~
# ! number_range.mt:9:7: error MT0006: 18014398509481985 is not exact; whole numbers are exact to 2^53
# !      9 |   i = 18014398509481985
# !        |       ^~~~~~~~~~~~~~~~~
