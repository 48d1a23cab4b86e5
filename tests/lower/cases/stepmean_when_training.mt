# the denominators of evaluation are those that the prologue counts for the same stepmeans
# fn eval
dim batch
model M(x: [batch], y: [batch]) -> (loss: f32[]) {
  if training { first = stepmean[batch](x, where = x > 0) } else { first = 0 }
  repeat 2 as i { first = first + stepmean[batch](y, where = y > i) }
  loss = first
}
# > fn eval(%1 y: float[batch]) -> () {
# >   %2 = const 0 : float[] ; stepmean_when_training.mt:6:66 layer 1 "model"
# >   %3 = gt(%1, %2) : bool[batch] ; stepmean_when_training.mt:6:62-66 layer 1 "model"
# >   %4 = const 0 : float[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %5 = select(%3, %1, %4) : float[batch] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %6 = read @$den1 : f64[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %7 = const 0 : f64[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %8 = gt(%6, %7) : bool[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %9 = const 1 : f64[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %10 = div(%9, %6) : f64[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %11 = select(%8, %10, %7) : f64[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %12 = sum[batch](%5) : float[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %13 = cast(%11) : float[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %14 = mul(%12, %13) : float[] ; stepmean_when_training.mt:6:35-67 layer 1 "model"
# >   %15 = const 0 : float[] ; stepmean_when_training.mt:6:27-31 layer 1 "model"
# >   %16 first = add(%15, %14) : float[] ; stepmean_when_training.mt:6:27-67 layer 1 "model"
# >   %17 = const 1 : float[] ; stepmean_when_training.mt:6:66 layer 2 "model"
# >   %18 = gt(%1, %17) : bool[batch] ; stepmean_when_training.mt:6:62-66 layer 2 "model"
# >   %19 = const 0 : float[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %20 = select(%18, %1, %19) : float[batch] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %21 = read @$den2 : f64[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %22 = const 0 : f64[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %23 = gt(%21, %22) : bool[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %24 = const 1 : f64[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %25 = div(%24, %21) : f64[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %26 = select(%23, %25, %22) : f64[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %27 = sum[batch](%20) : float[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %28 = cast(%26) : float[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %29 = mul(%27, %28) : float[] ; stepmean_when_training.mt:6:35-67 layer 2 "model"
# >   %30 first = add(%16, %29) : float[] ; stepmean_when_training.mt:6:27-67 layer 2 "model"
# >   %31 = cast(%30) : f32[] ; stepmean_when_training.mt:4:37-47 "model"
# >   %32 = cast(%31) : f64[] ; stepmean_when_training.mt:4:37-47 "lower: output of the model"
# >   accumulate @$out.loss, %32 ; stepmean_when_training.mt:4:37-47 "lower: output of the model"
# > }
