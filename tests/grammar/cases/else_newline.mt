fn A(x: [*]) -> [*] {
  if training { x = x + 1 }
  else { x = x - 1 }
  return x
}
# > (
# >   (fn A () ((formal x (type float ((star))) _)) ((type float ((star)))) (
# >     (if (name training) (
# >       (assign ((name x)) ((binary + (name x) (num 1))))) (
# >       (assign ((name x)) ((binary - (name x) (num 1))))))
# >     (return ((name x))))))
