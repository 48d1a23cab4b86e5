model M(tokens: i32[batch, seq], labels: i32[batch, seq] -> (loss: f32[]) {
  loss = 1
}
dim a
# ! unclosed_header_paren.mt:1:8: error MT0102: '(' is not closed
# !      1 | model M(tokens: i32[batch, seq], labels: i32[batch, seq] -> (loss: f32[]) {
# !        |        ^
