fn f(x: [*]) -> [*] { repeat 3 as i x = 1; return y }
# ! repeat_no_brace.mt:1:37: error MT0100: unexpected 'x', expected '{'
# !      1 | fn f(x: [*]) -> [*] { repeat 3 as i x = 1; return y }
# !        |                                     ^
# !          it is written like this: repeat layers as i { … }
