dim batch
fn f(x: [batch]) -> [] { return M(x) }
model M(x: [batch]) -> (loss: f32[]) { loss = f(x) }
# ! model_is_called.mt:2:33: error MT0222: M is a model and cannot be called
# !      2 | fn f(x: [batch]) -> [] { return M(x) }
# !        |                                 ^
# ! model_is_called.mt:3:47: note: in f, called here
