dim batch
model M(x: [batch]) -> (loss: f32[]) {
  loss = mean[batch](x)
  return loss
}
# ! model_returns.mt:4:3: error MT0268: a model assigns its outputs by name and does not return
# !      4 |   return loss
# !        |   ^~~~~~~~~~~
