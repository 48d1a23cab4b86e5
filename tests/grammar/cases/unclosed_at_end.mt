dim a = (1 + 2
# ! unclosed_at_end.mt:1:9: error MT0102: '(' is not closed
# !      1 | dim a = (1 + 2
# !        |         ^
