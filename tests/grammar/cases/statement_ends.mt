# a newline ends a statement, unless it cannot end there or goes on
fn f(x: [*],
     y: [*],     # a comment
)
    -> [*]
{
  a = x
    + y
  b = x +
    y
  c = f(x,
        y)
  d, e =
    x, y; g = x
  h = Linear[i, o](x)
    as
    name
  k = x
    @[d]
    y
  return
    a
}

dim v = 3
  pad 4; dim w
dim z
# > (
# >   (fn f () ((formal x (type float ((star))) _) (formal y (type float ((star))) _)) ((type float ((star)))) (
# >     (assign ((name a)) ((binary + (name x) (name y))))
# >     (assign ((name b)) ((binary + (name x) (name y))))
# >     (assign ((name c)) ((call f () () ((arg "" (name x)) (arg "" (name y))) _)))
# >     (assign ((name d) (name e)) ((name x) (name y)))
# >     (assign ((name g)) ((name x)))
# >     (assign ((name h)) ((call Linear ((name i) (name o)) () ((arg "" (name x))) (as name))))
# >     (assign ((name k)) ((contract (name x) (name y) ((name d)))))
# >     (return ((name a)))))
# >   (dim v (num 3) (num 4))
# >   (dim w _ _)
# >   (dim z _ _))
