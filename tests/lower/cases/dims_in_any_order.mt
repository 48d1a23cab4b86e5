# show dim
dim k3 = kseq
dim kseq = seq
dim half = extent(seq) / 2
dim seq = ctx
dim vocab = nvocab pad 128
dim v2 = vocab pad 64
dim v3 = vocab
dim kb = batch
dim batch
config { ctx = later * 2; later = 32 }
config { nvocab = 257 }
model M(x: [batch, kb, vocab]) -> (loss: f32[]) { loss = mean[batch, kb, vocab](x) }
parallel { map vocab -> tp; mesh tp = 3 }
train { micro_batch = 5; global_batch = 5 }
# > dim seq = 64
# > dim kseq = 64 of seq
# > dim k3 = 64 of seq
# > dim half = 32
# > dim vocab = 257 size 384
# > dim v2 = 257 size 320 of vocab
# > dim v3 = 257 size 384 of vocab
# > dim batch = 5 sample
# > dim kb = 5 of batch
