# mtc --set parallel.mesh=2 --set precision.keep=f32 --set parallel.map=tp
dim batch
model M(x: [batch]) -> (loss: f32[]) { loss = mean[batch](x) }
# ! (--set):1:1: error MT0330: no setting 'parallel.mesh'
# !      1 | parallel.mesh=2
# !        | ^~~~~~~~~~~~~~~
# !          the mesh is given by --mesh, as in --mesh dp=2,tp=2
# ! (--set):1:1: error MT0330: no setting 'precision.keep'
# !      1 | precision.keep=f32
# !        | ^~~~~~~~~~~~~~~~~~
# !          keep is said in the text or in a file for --parallel: precision { keep f32: softmax }
# ! (--set):1:1: error MT0330: no setting 'parallel.map'
# !      1 | parallel.map=tp
# !        | ^~~~~~~~~~~~~~~
# !          a rule is given by --map, as in --map 'seq -> cp'
