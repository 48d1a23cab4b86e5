# in x = -2 -0.5 0 1.5 3
# in y = 2 0.5 -1 4 3
dim a = 5
model M(x: [a], y: [a]) -> (loss: f32[], add: [a], sub: [a], mul: [a], div: [a], power: [a], neg_power: [a], mod: [a], small: [a], large: [a], less: bool[a],
                            same: bool[a], logic: bool[a], pick: [a], numbers: [a], flipped: [a], down: [a], up: [a], size: [a], chain: [a]) {
  add = x + y
  sub = x - y
  mul = x * y
  div = x / y
  power = x ^ 2
  neg_power = -x ^ 2
  mod = x % y
  small = min(x, y)
  large = max(x, 0)
  less = x < y
  same = x == y or x != 3 and not (x >= 0)
  logic = x <= 0 and y > 0
  pick = select(x > y, x, -inf)
  numbers = 2 - x
  flipped = 1 / y
  down = floor(x)
  up = ceil(x)
  size = abs(x)
  chain = 2 ^ 3 ^ 0 * x
  loss = sum[a](x)
}
# > loss = 2
# > add = 0 0 -1 5.5 6
# > sub = -4 -1 1 -2.5 0
# > mul = -4 -0.25 0 6 9
# > div = -1 -1 0 0.375 1
# > power = 4 0.25 0 2.25 9
# > neg_power = -4 -0.25 0 -2.25 -9
# > mod = 0 0 0 1.5 0
# > small = -2 -0.5 -1 1.5 3
# > large = 0 0 0 1.5 3
# > less = 1 1 0 1 0
# > same = 1 1 0 0 1
# > logic = 1 1 0 0 0
# > pick = -inf -inf 0 -inf -inf
# > numbers = 4 2.5 2 0.5 -1
# > flipped = 0.5 2 -1 0.25 0.333333
# > down = -2 -1 0 1 3
# > up = -2 0 0 2 3
# > size = 2 0.5 0 1.5 3
# > chain = -4 -1 0 3 6
