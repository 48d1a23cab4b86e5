config {
  a = "b\"c"
}
# ! string_escape.mt:2:7: error MT0007: a string has no escapes and no backslash
# !      2 |   a = "b\"c"
# !        |       ^~~~
