# mtc --parallel ../files/items.mtp
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! ../files/items.mtp:1:1: error MT0342: a parallel file holds precision, parallel and train only
# !      1 | dim x = 3
# !        | ^~~~~~~~~
# ! ../files/items.mtp:3:1: error MT0342: a parallel file holds precision, parallel and train only
# !      3 | fn f(x: [*]) -> [*] { return x }
# !        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
