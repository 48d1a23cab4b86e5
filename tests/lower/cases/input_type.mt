dim batch
dim seq = 4
model M(x, y: [*, seq], z: [batch, seq?]) -> (a: [batch, *]) {
  a = x
}
# ! input_type.mt:3:9: error MT0267: an input has a type: x: i32[batch, seq]
# !      3 | model M(x, y: [*, seq], z: [batch, seq?]) -> (a: [batch, *]) {
# !        |         ^
# ! input_type.mt:3:16: error MT0267: an input names its dims, without * and ?
# !      3 | model M(x, y: [*, seq], z: [batch, seq?]) -> (a: [batch, *]) {
# !        |                ^
# ! input_type.mt:3:36: error MT0267: an input names its dims, without * and ?
# !      3 | model M(x, y: [*, seq], z: [batch, seq?]) -> (a: [batch, *]) {
# !        |                                    ^~~~
