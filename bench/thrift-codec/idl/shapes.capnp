@0xb3e1c7a2d4f50968;

using Go = import "/go.capnp";
$Go.package("capnproto");
$Go.import("github.com/slipstream-go/slipstream/bench/thrift-codec/gen/capnproto");

struct Place {
  latitude @0 :Float64;
  longitude @1 :Float64;
  city @2 :Text;
}

struct Origin {
  host @0 :Text;
  port @1 :Int32;
  place @2 :Place;
}

struct Item {
  key @0 :Int64;
  name @1 :Text;
  price @2 :Float64;
  tags @3 :List(Text);
}

struct Entry {
  key @0 :Text;
  value @1 :Text;
}

struct Message {
  key @0 :Int64;
  name @1 :Text;
  payload @2 :Data;
  origin @3 :Origin;
  items @4 :List(Item);
  attributes @5 :List(Entry);
  tags @6 :List(Text);
}

struct Head {
  number @0 :Int64;
}

struct Series {
  number @0 :Int64;
  head @1 :Head;
  numbers @2 :List(Int64);
}
