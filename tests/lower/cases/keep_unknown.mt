dim batch
fn mine(x: [*]) -> [*] { return x }
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](mine(x)) }
precision {
  keep f32: sofmax, mine, exp
  keep i32: gelu
}
# ! keep_unknown.mt:5:13: error MT0320: keep f32: 'sofmax' is no function of the text or the prelude
# !      5 |   keep f32: sofmax, mine, exp
# !        |             ^~~~~~
# !          did you mean 'softmax'?
# ! keep_unknown.mt:5:27: error MT0320: keep f32: 'exp' is no function of the text or the prelude
# !      5 |   keep f32: sofmax, mine, exp
# !        |                           ^~~
# ! keep_unknown.mt:6:3: error MT0320: keep wants a float dtype, such as f32, not i32
# !      6 |   keep i32: gelu
# !        |   ^~~~~~~~~~~~~~
