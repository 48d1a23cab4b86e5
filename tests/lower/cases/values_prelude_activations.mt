# in x = -2 -0.5 0 0.5 2 6
dim g = 2
dim a = 3
model M(x: [g, a]) -> (loss: f32[], r: [g, a], s: [g, a], si: [g, a], ge: [g, a], gerf: [g, a], sw: [a], dr: [g, a]) {
  r = relu(x)
  s = sigmoid(x)
  si = silu(x)
  ge = gelu(x)
  gerf = gelu_erf(x)
  sw = swiglu[g](x)
  dr = dropout(x, 0.5)
  loss = sum[g, a](dropout(x, 0))
}
# > loss = 6
# > r = 0 0 0 0.5 2 6
# > s = 0.119203 0.377541 0.5 0.622459 0.880797 0.997527
# > si = -0.238406 -0.18877 0 0.31123 1.76159 5.98516
# > ge = -0.0454023 -0.154286 0 0.345714 1.9546 6
# > gerf = -0.0455003 -0.154269 0 0.345731 1.9545 6
# > sw = -0.119203 -0.377541 0
# > dr = -2 -0.5 0 0.5 2 6
