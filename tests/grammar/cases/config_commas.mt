config { a = 1, b = 2 }
# ! config_commas.mt:1:15: error MT0100: unexpected ',', expected the end of the line
# !      1 | config { a = 1, b = 2 }
# !        |               ^
# !          on one line, ';' stands between
