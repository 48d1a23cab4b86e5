dim batch
model M(x: [batch]) -> (loss: f32[], aux: f32[]) {
  loss = mean[batch](x)
  aux = loss
}
train { minimize = loss * aux + sqrt(loss) + loss ^ 2 + loss / 0 + "a" * loss }
# ! minimize_not_linear.mt:6:20: error MT0322: minimize wants a linear combination of outputs
# !      6 | train { minimize = loss * aux + sqrt(loss) + loss ^ 2 + loss / 0 + "a" * loss }
# !        |                    ^~~~~~~~~~
# !          such as loss + 0.01 * aux_loss; anything else is computed in the model and named as an output
# ! minimize_not_linear.mt:6:33: error MT0322: minimize wants a linear combination of outputs
# !      6 | train { minimize = loss * aux + sqrt(loss) + loss ^ 2 + loss / 0 + "a" * loss }
# !        |                                 ^~~~~~~~~~
# !          such as loss + 0.01 * aux_loss; anything else is computed in the model and named as an output
# ! minimize_not_linear.mt:6:46: error MT0322: minimize wants a linear combination of outputs
# !      6 | train { minimize = loss * aux + sqrt(loss) + loss ^ 2 + loss / 0 + "a" * loss }
# !        |                                              ^~~~~~~~
# !          such as loss + 0.01 * aux_loss; anything else is computed in the model and named as an output
# ! minimize_not_linear.mt:6:64: error MT0322: a factor of inf in minimize
# !      6 | train { minimize = loss * aux + sqrt(loss) + loss ^ 2 + loss / 0 + "a" * loss }
# !        |                                                                ^
# ! minimize_not_linear.mt:6:68: error MT0322: minimize: "a" is no number
# !      6 | …rt(loss) + loss ^ 2 + loss / 0 + "a" * loss }
# !        |                                   ^~~
