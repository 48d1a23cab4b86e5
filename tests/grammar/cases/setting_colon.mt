train {
  steps: 3
  lr = 1
}
# ! setting_colon.mt:2:8: error MT0100: unexpected ':', expected '='
# !      2 |   steps: 3
# !        |        ^
