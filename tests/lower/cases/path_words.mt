dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  param a as "a b": [seq] ~ ones
  param b as "w:grad": [seq] ~ ones
  param c as "a..b": [seq] ~ ones
  param d as "": [seq] ~ ones
  param e as "{seq": [seq] ~ ones
  param f as "$lr": [seq] ~ ones
  y = LayerNorm[seq](x) as "a."
  param g as "__metadata__": [seq] ~ ones
}
# ! path_words.mt:4:14: error MT0269: the path "a b" has a blank in it
# !      4 |   param a as "a b": [seq] ~ ones
# !        |              ^~~~~
# !          a path is words of letters, digits, _ and -, joined by dots, with {index}, {dim} or {dim:name,name}
# ! path_words.mt:5:14: error MT0269: the path "w:grad" has a ':' in it
# !      5 |   param b as "w:grad": [seq] ~ ones
# !        |              ^~~~~~~~
# !          a path is words of letters, digits, _ and -, joined by dots, with {index}, {dim} or {dim:name,name}
# ! path_words.mt:6:14: error MT0269: the path "a..b" has an empty word
# !      6 |   param c as "a..b": [seq] ~ ones
# !        |              ^~~~~~
# !          a path is words of letters, digits, _ and -, joined by dots, with {index}, {dim} or {dim:name,name}
# ! path_words.mt:7:14: error MT0269: the path "" is empty
# !      7 |   param d as "": [seq] ~ ones
# !        |              ^~
# !          a path is words of letters, digits, _ and -, joined by dots, with {index}, {dim} or {dim:name,name}
# ! path_words.mt:8:14: error MT0269: the path "{seq" does not close its '{'
# !      8 |   param e as "{seq": [seq] ~ ones
# !        |              ^~~~~~
# !          a path is words of letters, digits, _ and -, joined by dots, with {index}, {dim} or {dim:name,name}
# ! path_words.mt:9:14: error MT0269: the path "$lr" has a '$' in it
# !      9 |   param f as "$lr": [seq] ~ ones
# !        |              ^~~~~
# !          a path is words of letters, digits, _ and -, joined by dots, with {index}, {dim} or {dim:name,name}
# ! path_words.mt:10:28: error MT0269: the path "a." has an empty word
# !     10 |   y = LayerNorm[seq](x) as "a."
# !        |                            ^~~~
# !          a path is words of letters, digits, _ and -, joined by dots, with {index}, {dim} or {dim:name,name}
# ! path_words.mt:11:14: error MT0269: the path "__metadata__" is what a safetensors file calls its notes
# !     11 |   param g as "__metadata__": [seq] ~ ones
# !        |              ^~~~~~~~~~~~~~
# !          a path is words of letters, digits, _ and -, joined by dots, with {index}, {dim} or {dim:name,name}
