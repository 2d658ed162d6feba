struct Order {
  1: required i64 id
  2: bool paid
  3: optional i32 quantity
  4: optional double price
  5: optional string name
  6: optional binary payload
  7: optional Status status
  8: list<i64> codes
  9: list<string> tags
  10: map<string, string> attrs
  11: optional Order parent
  12: list<Order> lines
}
