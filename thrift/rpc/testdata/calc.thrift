// Services for the tests of package rpc.
namespace go calc

struct Point {
  1: required i32 x
  2: i32 y = 1
  3: optional string note
  4: binary blob
}

exception Overflow {
  1: string what
}

exception Division {
  1: i32 by
}

service Base {
  void ping()
}

service Calculator extends Base {
  /** Adds two numbers. */
  i32 add(1: i32 a, 2: i32 b = 2) throws (1: Overflow overflow, 2: Division division)
  Point move(1: Point point, 2: list<Point> by)
  string echo(1: string text) (slipstream.idempotent = "true")
  list<i64> numbers(1: i32 count)
  map<string, i32> counts(1: list<string> words)
  oneway void forget(1: i64 id)
  void fail(1: string how)
}

service Clock {
  i64 now()
  string echo(1: string text)
}
