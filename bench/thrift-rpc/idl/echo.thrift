namespace go NAMESPACE

struct Note {
  1: string text
  2: i64 number
}

service Echo {
  Note echo(1: Note note) (slipstream.idempotent = "true")
  i32 sleep(1: i32 milliseconds) (slipstream.idempotent = "true")
}
