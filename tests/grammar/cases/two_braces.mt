train { lr = 1e-3 }}
dim a
# ! two_braces.mt:1:20: error MT0107: '}' closes nothing
# !      1 | train { lr = 1e-3 }}
# !        |                    ^
