config { topk = 2 }
dim batch
dim seq = 4
model M(x: [batch, seq]) -> (y: [batch, seq]) {
  topk = 0.0
  seq = 2
  pi = 3
  repeat 2 as i { i = 1 }
  y = x
}
# ! assign_config.mt:5:3: error MT0223: 'topk' is a config (assign_config.mt:1:10) and cannot be assigned; choose another name
# !      5 |   topk = 0.0
# !        |   ^~~~
# ! assign_config.mt:6:3: error MT0223: 'seq' is a dim and cannot be assigned; choose another name
# !      6 |   seq = 2
# !        |   ^~~
# ! assign_config.mt:7:3: error MT0223: 'pi' is predefined and cannot be assigned; choose another name
# !      7 |   pi = 3
# !        |   ^~
# ! assign_config.mt:8:19: error MT0223: 'i' is a repeat index and cannot be assigned; choose another name
# !      8 |   repeat 2 as i { i = 1 }
# !        |                   ^
