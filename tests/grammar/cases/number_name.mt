dim 2d = 3
# ! number_name.mt:1:5: error MT0003: '2d' is neither a number nor a name; a name starts with a letter
# !      1 | dim 2d = 3
# !        |     ^~
