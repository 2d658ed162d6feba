// A streaming service for the tests of package rpc.
namespace go chat

struct Message {
  1: string text
  2: i64 number = -1
  3: optional binary blob
}

service Chat {
  /** Answers each message with one or more. */
  Message talk(1: Message message) (streaming.mode = "bidirectional")
  Message collect(1: Message message) (streaming.mode = "client")
  Message watch(1: Message message) (streaming.mode = "server")
  Message echo(1: Message message)
}
