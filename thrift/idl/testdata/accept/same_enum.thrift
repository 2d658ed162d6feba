# reference: rejects, because a value of an enum type must have a dot
enum Color { RED = 1 }
const Color A = Color.RED
const Color B = A
