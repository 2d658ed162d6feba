namespace go NAMESPACE

struct Note {
  1: string text
  2: i64 number
}

service Echo {
  Note echo(1: Note note) (slipstream.idempotent = "true")
  i32 sleep(1: i32 milliseconds) (slipstream.idempotent = "true")
}

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

service Messages {
  Message forward(1: Message message) (slipstream.idempotent = "true")
}

service Streams {
  Note talk(1: Note note) (streaming.mode = "bidirectional")
  Note watch(1: Note note) (streaming.mode = "server")
}
