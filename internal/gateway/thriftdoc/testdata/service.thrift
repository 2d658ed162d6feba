// Documents by key. Printed by slipstream idl from the configuration, which has the numbers of fields.
// A key is written as in the paths of HTTP: key columns separated by slashes, each percent-encoded where necessary.

// There is no document with the key.
exception NotFound {
  1: string message
}

// The freshness of the document cannot be promised at present.
exception Stale {
  1: string message
}

// The server or the caller does too much: the call may be repeated later.
exception Overloaded {
  1: string message
  2: optional i32 retry_after // seconds
}

// The credentials are missing, wrong or insufficient.
exception Denied {
  1: string message
}

// The call is wrong, such as its key.
exception Invalid {
  1: string message
}

// The document cannot be loaded at present, or has no struct.
exception Unavailable {
  1: string message
}

// An element of emps.
struct Order_lines_emps {
  1: optional i32 empno // integer
  2: optional string name
}

// A document of order-lines.
struct Order_lines {
  1: optional i64 id
  3: optional bool ok
  4: optional double ratio
  5: optional string price // numeric(10,2)
  6: optional string title
  7: optional i32 small // integer
  8: optional string tags // JSON
  9: optional string first_name // "first name"
  10: optional string class_ // "class"
  11: optional list<Order_lines_emps> emps
  300: optional string any // JSON
}

// An element of a batch; without a document, there is none with the key.
struct Order_lines_Entry {
  1: optional Order_lines document
}

// An element of a batch; without a document, there is none with the key.
struct Resource9lives_Entry {
  1: optional binary document
}

// An element of a batch; without a document, there is none with the key.
struct NotFound__Entry {
  1: optional binary document
}

service Slipstream {
  // order-lines, keys: {id}
  Order_lines get_order_lines(1: string key) throws (1: NotFound not_found, 2: Stale stale, 3: Overloaded overloaded, 4: Denied denied, 5: Invalid invalid, 6: Unavailable unavailable) (slipstream.idempotent = "true")
  list<Order_lines_Entry> list_order_lines(1: list<string> keys) throws (1: NotFound not_found, 2: Stale stale, 3: Overloaded overloaded, 4: Denied denied, 5: Invalid invalid, 6: Unavailable unavailable) (slipstream.idempotent = "true")
  // 9lives, keys: {a}/{b}, documents: JSON
  binary get_9lives(1: string key) throws (1: NotFound not_found, 2: Stale stale, 3: Overloaded overloaded, 4: Denied denied, 5: Invalid invalid, 6: Unavailable unavailable) (slipstream.idempotent = "true")
  list<Resource9lives_Entry> list_9lives(1: list<string> keys) throws (1: NotFound not_found, 2: Stale stale, 3: Overloaded overloaded, 4: Denied denied, 5: Invalid invalid, 6: Unavailable unavailable) (slipstream.idempotent = "true")
  // notFound, keys: {a}, documents: JSON
  binary get_notFound(1: string key) throws (1: NotFound not_found, 2: Stale stale, 3: Overloaded overloaded, 4: Denied denied, 5: Invalid invalid, 6: Unavailable unavailable) (slipstream.idempotent = "true")
  list<NotFound__Entry> list_notFound(1: list<string> keys) throws (1: NotFound not_found, 2: Stale stale, 3: Overloaded overloaded, 4: Denied denied, 5: Invalid invalid, 6: Unavailable unavailable) (slipstream.idempotent = "true")
}
