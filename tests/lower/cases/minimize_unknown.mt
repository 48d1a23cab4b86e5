dim batch
model M(x: [batch]) -> (loss: f32[], aux_loss: f32[], y: [batch], n: i32[batch]) {
  loss = mean[batch](x)
  aux_loss = loss
  y = x
  n = i32(x)
}
train { minimize = loss + aux + y - n }
# ! minimize_unknown.mt:8:27: error MT0322: minimize: 'aux' is no output; outputs are loss, aux_loss, y, n
# !      8 | train { minimize = loss + aux + y - n }
# !        |                           ^~~
# !          did you mean 'aux_loss'?
# ! minimize_unknown.mt:8:33: error MT0322: minimize: 'y' is no float without dims
# !      8 | train { minimize = loss + aux + y - n }
# !        |                                 ^
# ! minimize_unknown.mt:8:37: error MT0322: minimize: 'n' is no float without dims
# !      8 | train { minimize = loss + aux + y - n }
# !        |                                     ^
