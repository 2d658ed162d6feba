include "lib/shared.thrift"

namespace go loose

enum A { X = 1 }
enum B { X = 2 }
const A C = B.X
const list<shared.Level> LEVELS = [Level.LOW, shared.HIGH, shared.Level.LOW]
const set<i32> SAME = [5, 5]
