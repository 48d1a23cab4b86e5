config {
  if a { b = 1 }
  c = 2
}
dim d
# ! if_in_config.mt:2:3: error MT0100: unexpected 'if', expected a name or 'require' or '}'
# !      2 |   if a { b = 1 }
# !        |   ^~
# !          it is written like this: if training and p > 0 { … } else { … }
