namespace go shop

enum Status {
  NEW
  PAID
  SHIPPED
}

/** A line of an order. */
struct Line {
  1: required string sku
  2: i32 quantity = 1
  3: optional double price
}

struct Order {
  1: required i64 id
  2: Status status
  3: optional string note
  4: list<Line> lines
  5: list<i64> coupons
  6: map<string, string> labels
}
