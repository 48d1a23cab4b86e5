config {
  a = ""
  b = "a	b"
  c = ""
}
dim a
# ! control_bytes.mt:2:7: error MT0007: the string holds the control byte 0x01
# !      2 |   a = "?"
# !        |       ^~~
# ! control_bytes.mt:3:7: error MT0007: the string holds the control byte 0x09
# !      3 |   b = "a b"
# !        |       ^~~~~
# ! control_bytes.mt:4:7: error MT0007: the string holds the control byte 0x7f
# !      4 |   c = "?"
# !        |       ^~~
# ! control_bytes.mt:6:1: error MT0001: unexpected byte 0x0c
# !      6 | ?dim a
# !        | ^
