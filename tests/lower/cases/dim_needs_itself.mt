dim batch
dim a = b
dim b = extent(a) + 1
dim c = c
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! dim_needs_itself.mt:2:1: error MT0309: dim 'a' needs itself
# !      2 | dim a = b
# !        | ^~~~~~~~~
# ! dim_needs_itself.mt:4:1: error MT0309: dim 'c' needs itself
# !      4 | dim c = c
# !        | ^~~~~~~~~
