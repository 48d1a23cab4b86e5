# imported by cases
config { width = 4; deep = true }
dim batch
dim seq = width
fn twice(x: [*]) -> [*] { return 2 * x }
train { steps = 5; clip = 1 }
