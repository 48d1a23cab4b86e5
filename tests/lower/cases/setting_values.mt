dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
precision { compute = fp16; params = 32; grads = i32 }
parallel {
  zero = 4
  overlap = yes
  gather = onec
  bucket = 0.5
  recompute = 3
}
train {
  steps = 1.5
  micro_batch = 0
  global_batch = -1
  clip = -1
  seed = "a"
  optimizer = 3
  no_decay = bias
  schedule = cosine, linear
}
# ! setting_values.mt:3:23: error MT0331: precision.compute is one of f64, f32, bf16, f16; got fp16
# !      3 | precision { compute = fp16; params = 32; grads = i32 }
# !        |                       ^~~~
# !          did you mean 'f16'?
# ! setting_values.mt:3:38: error MT0331: precision.params is one of f64, f32, bf16, f16; got 32
# !      3 | precision { compute = fp16; params = 32; grads = i32 }
# !        |                                      ^~
# ! setting_values.mt:3:50: error MT0331: precision.grads is one of f64, f32, bf16, f16; got i32
# !      3 | precision { compute = fp16; params = 32; grads = i32 }
# !        |                                                  ^~~
# !          did you mean 'f32'?
# ! setting_values.mt:5:10: error MT0335: parallel.zero is at most 3, got 4
# !      5 |   zero = 4
# !        |          ^
# ! setting_values.mt:6:13: error MT0331: parallel.overlap is on or off, got yes
# !      6 |   overlap = yes
# !        |             ^~~
# ! setting_values.mt:7:12: error MT0331: parallel.gather is one of again, once; got onec
# !      7 |   gather = onec
# !        |            ^~~~
# !          did you mean 'once'?
# ! setting_values.mt:8:12: error MT0335: parallel.bucket is a whole number, got 0.5
# !      8 |   bucket = 0.5
# !        |            ^~~
# ! setting_values.mt:9:15: error MT0331: parallel.recompute is a word, with arguments or without, got 3
# !      9 |   recompute = 3
# !        |               ^
# ! setting_values.mt:12:11: error MT0335: train.steps is a whole number, got 1.5
# !     12 |   steps = 1.5
# !        |           ^~~
# ! setting_values.mt:13:17: error MT0335: train.micro_batch is at least 1, got 0
# !     13 |   micro_batch = 0
# !        |                 ^
# ! setting_values.mt:14:18: error MT0335: train.global_batch is at least 1, got -1
# !     14 |   global_batch = -1
# !        |                  ^~
# ! setting_values.mt:15:10: error MT0335: train.clip is at least 0, got -1
# !     15 |   clip = -1
# !        |          ^~
# ! setting_values.mt:16:10: error MT0331: train.seed is a number, got a
# !     16 |   seed = "a"
# !        |          ^~~
# ! setting_values.mt:17:15: error MT0331: train.optimizer is a word, with arguments or without, got 3
# !     17 |   optimizer = 3
# !        |               ^
# ! setting_values.mt:18:14: error MT0331: train.no_decay wants patterns in quotes, such as "*.bias"
# !     18 |   no_decay = bias
# !        |              ^~~~
# ! setting_values.mt:19:3: error MT0331: train.schedule has one value
# !     19 |   schedule = cosine, linear
# !        |   ^~~~~~~~~~~~~~~~~~~~~~~~~
