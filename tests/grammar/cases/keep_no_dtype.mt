precision {
  keep softmax
  compute = bf16
}
# ! keep_no_dtype.mt:2:8: error MT0100: unexpected 'softmax', expected a dtype
# !      2 |   keep softmax
# !        |        ^~~~~~~
# !          it is written like this: keep f32: layernorm, softmax
