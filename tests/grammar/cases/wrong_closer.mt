fn f(x: [*]) -> [*] { y = (x + 1]; return y }
# ! wrong_closer.mt:1:27: error MT0102: '(' is not closed before the ']' of 1:33
# !      1 | fn f(x: [*]) -> [*] { y = (x + 1]; return y }
# !        |                           ^
