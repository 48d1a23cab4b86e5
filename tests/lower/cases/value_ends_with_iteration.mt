dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  repeat 3 as i { z = x * i }
  y = z
}
# ! value_ends_with_iteration.mt:5:7: error MT0225: 'z' is first assigned inside repeat (line 4) and ends there; give it a value before
# !      5 |   y = z
# !        |       ^
