config {
  a = 'b'
}
# ! single_quotes.mt:2:7: error MT0002: a string is written with "double quotes"
# !      2 |   a = 'b'
# !        |       ^~~
