config { a = .5; }
config { a = 1. }
config { a = 0x10; }
config { a = 1_000 }
config { a = 1e }
# ! number_forms.mt:1:14: error MT0003: a number starts with a digit; write 0.5
# !      1 | config { a = .5; }
# !        |              ^~
# ! number_forms.mt:2:14: error MT0003: a number does not end with a dot; write 1.0
# !      2 | config { a = 1. }
# !        |              ^~
# ! number_forms.mt:3:14: error MT0003: '0x10' is neither a number nor a name; a name starts with a letter
# !      3 | config { a = 0x10; }
# !        |              ^~~~
# ! number_forms.mt:4:14: error MT0003: '1_000' is neither a number nor a name; a name starts with a letter
# !      4 | config { a = 1_000 }
# !        |              ^~~~~
# ! number_forms.mt:5:14: error MT0003: '1e' is neither a number nor a name; a name starts with a letter
# !      5 | config { a = 1e }
# !        |              ^~
