dim batch
dim seq
model M(x: [batch, seq]) -> (y: [batch]) { y = sum[seq](x) }
# ! second_dim_of_the_run.mt:2:1: error MT0308: dim seq has no extent, and the run gives one only: that of 'batch' (second_dim_of_the_run.mt:1:1)
# !      2 | dim seq
# !        | ^~~~~~~
