dim batch
dim seq = 16
model M(x: [batch, seq, seq]) -> (y: [batch]) {
  y = sum[seq](x)
}
# ! dim_twice_input.mt:3:25: error MT0214: seq occurs twice
# !      3 | model M(x: [batch, seq, seq]) -> (y: [batch]) {
# !        |                         ^~~
# !          declare a role, a second dim of the same extent: dim kseq = seq
