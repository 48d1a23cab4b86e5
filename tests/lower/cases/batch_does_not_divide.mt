# mtc --mesh dp=2
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
parallel { map batch -> dp }
train { micro_batch = 3; global_batch = 8 }
# ! batch_does_not_divide.mt:5:41: error MT0334: train.global_batch is 8 and must be a multiple of 6, the samples of a microbatch on all ranks
# !      5 | train { micro_batch = 3; global_batch = 8 }
# !        |                                         ^
# !          train.micro_batch is 3, the axes that batch is mapped to make 2; their product may be 1, 2, 4, 8
