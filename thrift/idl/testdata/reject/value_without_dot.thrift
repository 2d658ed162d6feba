enum A { X }
enum B { Y }
const A C = X
const A D = B.Y
const A E = B.X.Y
