fn f(x: [*]) -> [*] {
  y = 1
  else { }
  return x
}
# ! stray_else.mt:3:3: error MT0103: 'else' follows no if
# !      3 |   else { }
# !        |   ^~~~
