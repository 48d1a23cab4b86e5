dim batch
dim seq = 16
fn square(x: [batch, seq, seq]) -> [*] { return x }
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  y = square(x)
}
# ! dim_twice.mt:3:27: error MT0214: seq occurs twice
# !      3 | fn square(x: [batch, seq, seq]) -> [*] { return x }
# !        |                           ^~~
# !          declare a role, a second dim of the same extent: dim kseq = seq
# ! dim_twice.mt:5:7: note: in square, called here
