fn f(x: [*]) -> [*] { return x[0] }
# ! index_number.mt:1:32: error MT0100: unexpected '0', expected a name or '('
# !      1 | fn f(x: [*]) -> [*] { return x[0] }
# !        |                                ^
