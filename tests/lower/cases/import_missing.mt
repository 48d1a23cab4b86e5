import "missing.mt"
import "../files"
import ""
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! import_missing.mt:1:1: error MT0341: 'missing.mt' cannot be imported: No such file or directory
# !      1 | import "missing.mt"
# !        | ^~~~~~~~~~~~~~~~~~~~
# ! import_missing.mt:2:1: error MT0341: '../files' cannot be imported: it is a folder
# !      2 | import "../files"
# !        | ^~~~~~~~~~~~~~~~~~
# ! import_missing.mt:3:1: error MT0341: '' cannot be imported: the name is empty
# !      3 | import ""
# !        | ^~~~~~~~~~
