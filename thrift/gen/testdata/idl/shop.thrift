/**
 * Package shop has orders of a shop. It is an example of what the generator writes for
 * ordinary declarations.
 */
namespace go testpkg.shop

include "types.thrift"
include "lib/shared.thrift"

/** The state of an order. */
enum Status {
  NEW, // It was not paid.
  PAID = 1,
  /** It was sent back. */
  RETURNED = 5
  SENT_BACK = 5
}

typedef i64 OrderId

/** A line of an order. */
struct Line {
  1: required string sku
  2: i32 quantity = 1
  3: optional double price
}

// An order.
struct Order {
  1: required OrderId id (go.tag = 'json:"id"')
  2: bool paid
  3: i8 small
  4: i16 medium
  /** How many there are. */
  5: optional i32 quantity
  6: optional double price
  7: uuid key
  8: optional string name
  9: optional binary payload
  10: optional Status status
  11: list<i64> codes
  12: set<string> tags
  13: map<string, string> attrs
  14: optional Order parent
  15: list<Line> lines
  16: shared.Point place
  40: map<i32, list<Status>> states
}

/** What is looked for. */
union Query {
  1: OrderId id
  2: string text
  3: list<Status> any_of
  4: shared.Point near
  5: map<string, i32> weights
  6: bool everything
}

exception NotFound {
  1: required OrderId id
  2: string message
}

exception Closed {}

const i32 MAX_LINES = 100
const string GREETING = "hello \"you\"\n"
const Status INITIAL = Status.NEW
const list<string> UNITS = ["piece", "box"]
const map<string, i32> SIZES = {"small": 1, "medium, or so": 2, "large": 3, "very large": 4, "unknown": -1}
const Line SAMPLE = {"sku": "A-1"}
const Order EMPTY = {"id": 0, "lines": [{"sku": "x", "quantity": 2, "price": 1.5}, SAMPLE], "place": shared.ORIGIN}

service Base {
  void ping()
}

/** Orders. */
service Orders extends Base {
  /** Finds an order. */
  Order find(1: Query query, 2: i32 limit = 10) throws (1: NotFound missing, 2: Closed closed)
  oneway void forget(1: OrderId id)
  list<Order> all(1: set<Status> states)
  bool has(1: required OrderId id)
}
