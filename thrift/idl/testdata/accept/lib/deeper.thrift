include "shared.thrift"

namespace go deeper

struct Line {
  1: shared.Point from_point,
  2: shared.Point to_point
}

service Middle extends shared.Base {
  shared.Level level(1: Line line)
}
