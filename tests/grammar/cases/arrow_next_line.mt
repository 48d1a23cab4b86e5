fn A(x: [*])
    -> [*] {
  y = x
  return y
}
fn B(x: [*]) -> [*] { return x }
# > (
# >   (fn A () ((formal x (type float ((star))) _)) ((type float ((star)))) (
# >     (assign ((name y)) ((name x)))
# >     (return ((name y)))))
# >   (fn B () ((formal x (type float ((star))) _)) ((type float ((star)))) (
# >     (return ((name x))))))
