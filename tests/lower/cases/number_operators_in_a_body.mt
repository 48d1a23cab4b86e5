dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  a = 1 + true
  b = max("a", 1)
  c = not 3
  d = f32("x")
  y = x * "a"
}
# ! number_operators_in_a_body.mt:4:7: error MT0247: '+' does not take true
# !      4 |   a = 1 + true
# !        |       ^~~~~~~~
# ! number_operators_in_a_body.mt:5:7: error MT0247: 'max' does not take "a"
# !      5 |   b = max("a", 1)
# !        |       ^~~~~~~~~~~
# ! number_operators_in_a_body.mt:6:7: error MT0247: 'not' does not take 3
# !      6 |   c = not 3
# !        |       ^~~~~
# ! number_operators_in_a_body.mt:7:7: error MT0247: f32 does not take "x"
# !      7 |   d = f32("x")
# !        |       ^~~~~~~~
# ! number_operators_in_a_body.mt:8:11: error MT0247: '*' does not take "a"
# !      8 |   y = x * "a"
# !        |           ^~~
