import "../files/broken.mt"
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! ../files/broken.mt:1:33: error MT0100: unexpected end of the line, expected a value
# !      1 | fn f(x: [*]) -> [*] { return x + }
# !        |                                 ^
