fn f(x: [*]) -> [*]
{
  if training
  {
    x = x + 1
  }
  else
  {
    x = 2
  }
  return x
}
# > (
# >   (fn f () ((formal x (type float ((star))) _)) ((type float ((star)))) (
# >     (if (name training) (
# >       (assign ((name x)) ((binary + (name x) (num 1))))) (
# >       (assign ((name x)) ((num 2)))))
# >     (return ((name x))))))
