# `float` is at least what the outermost kept function says; a result is rounded back unless it has a width
# fn forward
dim a = 2
fn inner(x: [*]) -> [*] { return x * 2 }
fn outer(x: [*]) -> [*] { return inner(x) + float(1) }
fn wide(x: [*]) -> f64[*] { return outer(x) }
fn plain(x: [*]) -> [*] { return inner(x) }
model M(x: [a], w: f32[a]) -> (loss: f32[], other: f32[]) {
  loss = sum[a](outer(x))
  other = f32(sum[a](wide(x)) + sum[a](plain(w)))
}
precision { keep f32: outer; keep f64: wide; keep f32: inner }
# > fn forward(%1 x: float[a], %2 w: f32[a]) -> (loss: %23, other: %22) {
# >   %3 = cast(%1) : f32[a] ; keep_inside_keep.mt:9:23 "model"
# >   %4 = const 2 : f32[] ; keep_inside_keep.mt:4:38 "model"
# >   %5 = mul(%3, %4) : f32[a] ; keep_inside_keep.mt:4:34-38 "model"
# >   %6 = const 1 : f32[] ; keep_inside_keep.mt:5:45-52 "model"
# >   %7 = add(%5, %6) : f32[a] ; keep_inside_keep.mt:5:34-52 "model"
# >   %8 = cast(%7) : float[a] ; keep_inside_keep.mt:9:17-24 "model"
# >   %9 loss = sum[a](%8) : float[] ; keep_inside_keep.mt:9:10-25 "model"
# >   %10 = cast(%1) : f64[a] ; keep_inside_keep.mt:10:27 "model"
# >   %11 = const 2 : f64[] ; keep_inside_keep.mt:4:38 "model"
# >   %12 = mul(%10, %11) : f64[a] ; keep_inside_keep.mt:4:34-38 "model"
# >   %13 = const 1 : f64[] ; keep_inside_keep.mt:5:45-52 "model"
# >   %14 = add(%12, %13) : f64[a] ; keep_inside_keep.mt:5:34-52 "model"
# >   %15 = sum[a](%14) : f64[] ; keep_inside_keep.mt:10:15-29 "model"
# >   %16 = const 2 : f32[] ; keep_inside_keep.mt:4:38 "model"
# >   %17 = mul(%2, %16) : f32[a] ; keep_inside_keep.mt:4:34-38 "model"
# >   %18 = cast(%17) : float[a] ; keep_inside_keep.mt:7:34-41 "model"
# >   %19 = sum[a](%18) : float[] ; keep_inside_keep.mt:10:33-48 "model"
# >   %20 = cast(%19) : f64[] ; keep_inside_keep.mt:10:33-48 "model"
# >   %21 = add(%15, %20) : f64[] ; keep_inside_keep.mt:10:15-48 "model"
# >   %22 other = cast(%21) : f32[] ; keep_inside_keep.mt:10:11-49 "model"
# >   %23 = cast(%9) : f32[] ; keep_inside_keep.mt:8:32-42 "model"
# > }
