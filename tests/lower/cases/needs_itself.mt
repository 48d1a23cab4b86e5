config { a = b + 1; b = a * 2; c = c }
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! needs_itself.mt:1:10: error MT0309: config 'a' needs itself
# !      1 | config { a = b + 1; b = a * 2; c = c }
# !        |          ^~~~~~~~~
# ! needs_itself.mt:1:32: error MT0309: config 'c' needs itself
# !      1 | config { a = b + 1; b = a * 2; c = c }
# !        |                                ^~~~~
