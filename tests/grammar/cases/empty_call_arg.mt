fn A(x: [*]) -> [*] {
  return max(x, , 1)
}
# ! empty_call_arg.mt:2:17: error MT0100: unexpected ',', expected a value or ')'
# !      2 |   return max(x, , 1)
# !        |                 ^
