# show output
config { weight = 0.5 }
dim batch
dim n = 4
model M(x: [batch]) -> (loss: f32[], aux: f32[], third: f32[], logged: f32[]) {
  loss = stepmean[batch](x)
  aux = mean[batch](x * x)
  third = stepmean[batch](x * 3)
  logged = sum[batch](x)
}
train { minimize = -(loss / 2 - weight * aux) + 2 * pi * third - (loss + aux) * 2 ^ 2 + third / extent(n) }
# > output loss coef -4.5 per_step ; minimize_forms.mt:5:25-35
# > output aux coef -3.5 ; minimize_forms.mt:5:38-47
# > output third coef 6.533185307179586 per_step ; minimize_forms.mt:5:50-61
# > output logged coef 0 ; minimize_forms.mt:5:64-76
