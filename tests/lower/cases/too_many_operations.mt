dim batch
fn twice(x: [*]) -> [*] { return x + x * 1.5 }
model M(x: [batch]) -> (loss: f32[]) {
  repeat 1000000 as i { x = twice(x) }
  loss = mean[batch](x)
}
# ! too_many_operations.mt:4:3: error MT0254: unrolled, this is more than 300000 operations
# !      4 |   repeat 1000000 as i { x = twice(x) }
# !        |   ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
