namespace go NAMESPACE

struct Place {
  1: double latitude
  2: double longitude
  3: string city
}

struct Origin {
  1: string host
  2: i32 port
  3: optional Place place
}

struct Item {
  1: i64 key
  2: string name
  3: double price
  4: optional list<string> tags
}

struct Message {
  1: i64 key
  2: string name
  3: optional binary payload
  4: optional Origin origin
  5: optional list<Item> items
  6: optional map<string, string> attributes
  7: optional list<string> tags
}

struct Head {
  1: i64 number
}

struct Series {
  1: i64 number
  2: optional Head head
  3: list<i64> numbers
}
