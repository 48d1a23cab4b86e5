train { optimizer = adamw(lr = 1e-3 }
 dim a
# ! unclosed_paren_brace.mt:1:26: error MT0102: '(' is not closed
# !      1 | train { optimizer = adamw(lr = 1e-3 }
# !        |                          ^
