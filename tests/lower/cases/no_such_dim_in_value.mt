dim batch
dim seq = 4
dim kseq = seq
model M(x: [batch, seq]) -> (y: [batch]) {
  y = sum[kseq](x)
}
# ! no_such_dim_in_value.mt:5:11: error MT0205: x is float[batch, seq] and has no kseq
# !      5 |   y = sum[kseq](x)
# !        |           ^~~~
# !          it has seq, another role of the same dim
