fn f(x: [*]) -> [*] { return x + }
