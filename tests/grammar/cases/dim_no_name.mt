dim = 3
dim b = 4
# ! dim_no_name.mt:1:5: error MT0100: unexpected '=', expected a name
# !      1 | dim = 3
# !        |     ^
# !          it is written like this: dim vocab = nvocab pad 128
