train { no_decay = "abc
  clip = 1.0
}
# ! unterminated_string.mt:1:20: error MT0002: the string does not end on its line
# !      1 | train { no_decay = "abc
# !        |                    ^~~~
