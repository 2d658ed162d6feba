namespace go orders

enum Status {
  NEW
  PAID
  SHIPPED
}

struct Line {
  1: required string product
  2: i32 quantity = 1
}

struct Order {
  1: required i64 id
  2: Status status
  3: list<Line> lines
  4: optional string note
}

exception NotFound {
  1: i64 id
}

service Orders {
  /** Returns an order. It changes nothing, so a call may be repeated. */
  Order get(1: i64 id) throws (1: NotFound missing) (slipstream.idempotent)

  /** Stores an order and returns its ID. */
  i64 place(1: Order order)

  /** Hands an order to a carrier. */
  void ship(1: i64 id)
}
