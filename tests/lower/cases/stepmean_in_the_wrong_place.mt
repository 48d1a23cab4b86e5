dim batch
dim seq = 4
fn masked(x: [*], m: bool[*]) -> [*] { return stepmean[seq](x, where = m) }
model M(x: [batch, seq], m: bool[batch, seq]) -> (loss: f32[batch]) {
  loss = masked(x, m)
}
# ! stepmean_in_the_wrong_place.mt:3:47: error MT0219: stepmean has one denominator; where has batch, which is not in the brackets
# !      3 | fn masked(x: [*], m: bool[*]) -> [*] { return stepmean[seq](x, where = m) }
# !        |                                               ^~~~~~~~~~~~~~~~~~~~~~~~~~~
# ! stepmean_in_the_wrong_place.mt:5:10: note: in masked, called here
