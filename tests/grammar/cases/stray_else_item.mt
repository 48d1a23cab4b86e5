fn f(x: [*]) -> [*] {
  return x
} else {
}
# ! stray_else_item.mt:3:3: error MT0103: 'else' follows no if
# !      3 | } else {
# !        |   ^~~~
