namespace go catalog

struct Item {
  1: i64 id
  2: string name
  3: double price
  4: list<string> tags
}

exception NotFound {
  1: i64 id
}

service Catalog {
  /** Finds an item. It changes nothing, so a call may be repeated. */
  Item find(1: i64 id) throws (1: NotFound missing) (slipstream.idempotent = "true")

  /** Adds an item, or replaces it, and returns its ID. */
  i64 store(1: Item item)

  /** Records that an item was viewed. Clients do not wait for a reply. */
  oneway void viewed(1: i64 id)
}
