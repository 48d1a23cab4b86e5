config { a = 1; require a = 2 }
# ! assign_in_expr.mt:1:27: error MT0105: '=' names a value; '==' compares
# !      1 | config { a = 1; require a = 2 }
# !        |                           ^
