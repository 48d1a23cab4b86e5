# mtc -D kind=swish
config { kind = "gelu" }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (-D):1:6: error MT0304: kind is a string (config_word.mt:2:10), got swish
# !      1 | kind=swish
# !        |      ^~~~~
# !          strings are quoted: -D 'kind="swish"'
