dim batch
dim a = 4
config { b = extent(a) }
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! extent_in_config.mt:3:21: error MT0220: extents are not known here: dims are worked out after config and settings
# !      3 | config { b = extent(a) }
# !        |                     ^
