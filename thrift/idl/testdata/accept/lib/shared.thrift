namespace go shared
namespace py lib.shared

enum Level { LOW = 1, HIGH = 10 }

typedef map<string, list<i64>> Index

struct Point {
  1: required double x,
  2: required double y
}

exception Failure {
  1: string message
}

const i32 LIMIT = 100
const Point ORIGIN = {"x": 0, "y": 0.0}
const list<string> WORDS = ["a", "b"]

service Base {
  void ping()
}
