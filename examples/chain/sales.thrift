namespace go sales

service Sales {
  /** Counts a sale of a product, and returns how many there were. A repeated call would count twice. */
  i64 sell(1: string product)

  /** Returns how many sales of a product there were. It changes nothing, so a call may be repeated. */
  i64 sold(1: string product) (slipstream.idempotent)
}
