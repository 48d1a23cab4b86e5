  config { a = 1 }
  precision { compute = f32 }
# > (
# >   (config (
# >     (set a ((num 1)))))
# >   (precision (
# >     (set compute ((dtype f32))))))
