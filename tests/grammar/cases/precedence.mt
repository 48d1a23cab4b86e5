# loosest first: or, and, not, comparisons, + -, * / %, @, unary -, ^
config {
  a = 1 or 2 and not 3 == 4 + 5 * 6
  b = -2 ^ 2
  c = 2 ^ 3 ^ 2
  d = 2 ^ -1
  e = 1 - 2 - 3
  f = 8 / 4 * 2 % 3
  g = -a @ b * c @ d
  h = not a and b
  i = (1 + 2) * 3
  j = -f(1) @[x] -g(2)
  k = a < 1 or a >= 2
  l = not not a
}
# > (
# >   (config (
# >     (set a ((binary or (num 1) (binary and (num 2) (unary not (binary == (num 3) (binary + (num 4) (binary * (num 5) (num 6)))))))))
# >     (set b ((unary - (binary ^ (num 2) (num 2)))))
# >     (set c ((binary ^ (num 2) (binary ^ (num 3) (num 2)))))
# >     (set d ((binary ^ (num 2) (unary - (num 1)))))
# >     (set e ((binary - (binary - (num 1) (num 2)) (num 3))))
# >     (set f ((binary % (binary * (binary / (num 8) (num 4)) (num 2)) (num 3))))
# >     (set g ((binary * (contract (unary - (name a)) (name b) _) (contract (name c) (name d) _))))
# >     (set h ((binary and (unary not (name a)) (name b))))
# >     (set i ((binary * (binary + (num 1) (num 2)) (num 3))))
# >     (set j ((contract (unary - (call f () () ((arg "" (num 1))) _)) (unary - (call g () () ((arg "" (num 2))) _)) ((name x)))))
# >     (set k ((binary or (binary < (name a) (num 1)) (binary >= (name a) (num 2)))))
# >     (set l ((unary not (unary not (name a))))))))
