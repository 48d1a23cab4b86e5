# mtc -D hidden=true -D name=3 -D bias=0 -D n=0.5
config { hidden = 768; name = "a"; bias = true; n = 2 }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (-D):1:8: error MT0304: hidden is a number (config_kind.mt:2:10), got true
# !      1 | hidden=true
# !        |        ^~~~
# ! (-D):1:6: error MT0304: name is a string (config_kind.mt:2:24), got 3
# !      1 | name=3
# !        |      ^
# ! (-D):1:6: error MT0304: bias is true or false (config_kind.mt:2:36), got 0
# !      1 | bias=0
# !        |      ^
