model M(tokens: i32[batch]) -> f32[] {
  loss = 1
}
# ! output_no_name.mt:1:32: error MT0100: unexpected 'f32', expected a name or '('
# !      1 | model M(tokens: i32[batch]) -> f32[] {
# !        |                                ^~~
# !          it is written like this: model M(tokens: i32[batch, seq]) -> (loss: f32[], logits: [batch, seq, vocab]) { … }
