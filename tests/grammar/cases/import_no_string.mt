import torch
# ! import_no_string.mt:1:8: error MT0100: unexpected 'torch', expected a string
# !      1 | import torch
# !        |        ^~~~~
# !          it is written like this: import "file.mt"
