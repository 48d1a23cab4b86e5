import "../files/parts.mt"
dim seq = 4
fn twice(x: [*]) -> [*] { return x }
config { width = 3 }
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! import_defines_twice.mt:3:1: error MT0224: 'twice' is already defined at ../files/parts.mt:5:1
# !      3 | fn twice(x: [*]) -> [*] { return x }
# !        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ! import_defines_twice.mt:2:1: error MT0224: dim 'seq' is already defined at ../files/parts.mt:4:1
# !      2 | dim seq = 4
# !        | ^~~~~~~~~~~
