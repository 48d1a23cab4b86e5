dim batch
model M(x: [batch]) -> (loss: f32[]) {
  n = 0
  repeat 100000000 as i { repeat 1000000 as j { n = n + 1 } }
  loss = mean[batch](x)
}
# ! repeat_too_often.mt:4:27: error MT0254: unrolled, this is more than 4000000 statements and calls
# !      4 |   repeat 100000000 as i { repeat 1000000 as j { n = n + 1 } }
# !        |                           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
