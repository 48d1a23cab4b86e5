config { a = 1; require a > 0 && a < 3 }
# ! andand.mt:1:31: error MT0005: write 'and'
# !      1 | config { a = 1; require a > 0 && a < 3 }
# !        |                               ^~
