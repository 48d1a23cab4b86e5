fn f(x: [*]) -> [*] {
  for i in 3 { x = x }
  while true { x = 1 }
  return x
}
# ! foreign_loop.mt:2:7: error MT0100: unexpected 'i', expected '=' or ','
# !      2 |   for i in 3 { x = x }
# !        |       ^
# !          did you mean 'repeat'?
# ! foreign_loop.mt:3:9: error MT0100: unexpected 'true', expected '=' or ','
# !      3 |   while true { x = 1 }
# !        |         ^~~~
# !          did you mean 'repeat'?
