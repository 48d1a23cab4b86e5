preset p {
hidden = 3
precision.compute = f32
train.steps = 3
}
# > (
# >   (preset p (
# >     (set hidden ((num 3)))
# >     (set precision.compute ((dtype f32)))
# >     (set train.steps ((num 3))))))
