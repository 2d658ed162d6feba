namespace go NAMESPACE

struct Place {
  1: double latitude
  2: double longitude
  3: string city
}

struct Origin {
  1: string host
  2: i32 port
  3: required Place place
}

struct Item {
  1: i64 key
  2: string name
  3: double price
  4: list<string> tags
}

struct Message {
  1: i64 key
  2: string name
  3: optional binary payload
  4: required Origin origin
  5: list<Item> items
  6: map<string, string> attributes
  7: list<string> tags
}

struct Head {
  1: i64 number
}

struct Series {
  1: i64 number
  2: required Head head
  3: list<i64> numbers
}
