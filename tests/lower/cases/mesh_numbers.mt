# mtc --mesh dp=0,tp=2.5,dp=2,cp=true
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--mesh):1:1: error MT0305: mesh dp is 0; it must be whole, positive and at most 1048576
# !      1 | dp=0,tp=2.5,dp=2,cp=true
# !        | ^~~~
# ! (--mesh):1:6: error MT0305: mesh tp is 2.5; it must be whole, positive and at most 1048576
# !      1 | dp=0,tp=2.5,dp=2,cp=true
# !        |      ^~~~~~
# ! (--mesh):1:13: error MT0224: axis 'dp' is given twice
# !      1 | dp=0,tp=2.5,dp=2,cp=true
# !        |             ^~~~
# ! (--mesh):1:18: error MT0305: mesh cp is true; it must be whole, positive and at most 1048576
# !      1 | dp=0,tp=2.5,dp=2,cp=true
# !        |                  ^~~~~~~
