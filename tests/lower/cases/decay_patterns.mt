dim batch
dim d = 4
model M(x: [batch, d]) -> (loss: f32[]) { loss = mean[batch, d](RMSNorm[d](x) as norm) }
train { no_decay = "*.gian", "*.weight"; decay = "nrom" }
# ! decay_patterns.mt:4:9: error MT0321: no_decay = "*.gian" matches no parameter
# !      4 | train { no_decay = "*.gian", "*.weight"; decay = "nrom" }
# !        |         ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# !          a pattern matches a whole path, with * for any part; mtc dump --params lists them
# ! decay_patterns.mt:4:42: error MT0321: decay = "nrom" matches no parameter
# !      4 | train { no_decay = "*.gian", "*.weight"; decay = "nrom" }
# !        |                                          ^~~~~~~~~~~~~~
# !          a pattern matches a whole path, with * for any part; mtc dump --params lists them
