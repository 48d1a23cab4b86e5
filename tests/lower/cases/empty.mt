# ! empty.mt: error MT0343: the text has no model
# !          a model is written: model NAME(tokens: i32[batch, seq], …) -> (loss: f32[]) { … }
