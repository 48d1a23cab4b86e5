fn f(x: f33[*]) -> [*] { return x }
# ! misspelt_dtype.mt:1:9: error MT0100: unexpected 'f33', expected a dtype or '['
# !      1 | fn f(x: f33[*]) -> [*] { return x }
# !        |         ^~~
# !          did you mean 'f32'?
