enum Color { RED = 1 }
const Color A = Color.GREEN
const Color B = 7
const Color C = RED
const Color D = "RED"
