include "lib/shared.thrift"
include "lib/deeper.thrift"

namespace go services

struct Request { 1: string text }
exception Refused { 1: string why }

/** The first service. */
service First {
  /** Does nothing. */
  void nothing(),
  Request echo(1: Request request);
  oneway void tell(1: string text, 2: optional i32 times)
  async void tell_again()
  list<i32> many(1: required i32 a = 5, 2: map<string, i32> b) throws (1: Refused refused, 2: shared.Failure failure) (timeout = "5s"),
  shared.Point point()
  i32 implicit_ids(i32 a, i32 b)
  i64 (result = "annotated") annotated()
  oneway void throws_nothing() throws ()
} (owner = "team")

service Second extends First {}
service Third extends shared.Base { void pong() }
service Fourth extends deeper.Middle { void last() }
