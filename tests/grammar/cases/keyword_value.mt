fn f(x: [*]) -> [*] { y = model + 1; return y }
# ! keyword_value.mt:1:27: error MT0104: 'model' is a word of the language; choose another name
# !      1 | fn f(x: [*]) -> [*] { y = model + 1; return y }
# !        |                           ^~~~~
