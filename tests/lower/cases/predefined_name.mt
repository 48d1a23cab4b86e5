config { pi = 3 }
dim batch
model M(x: [batch]) -> (loss: f32[]) {
  loss = mean[batch](x)
}
# ! predefined_name.mt:1:10: error MT0224: 'pi' is predefined; choose another name
# !      1 | config { pi = 3 }
# !        |          ^~~~~~
