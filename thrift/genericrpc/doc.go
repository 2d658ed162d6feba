// Package genericrpc calls and serves Thrift services without generated code: the IDL is parsed at run
// time, and arguments and results are JSON, or stay encoded. It is meant for tools, gateways and
// proxies; clients and handlers that know their service use generated code, which is faster.
//
//	program, err := idl.Load(idl.Config{}, "shop.thrift")
//	...
//	client, err := rpc.NewClient(rpc.ClientConfig{Addr: "shop:9090"})
//	...
//	orders, err := genericrpc.NewClient(client, program.Roots[0].Service("Orders"), genericrpc.Config{})
//	...
//	order, err := orders.Call(ctx, "find", []byte(`{"query": {"id": 17}}`))
//
// Programs with generated code that contains its IDL get the service from there: see
// [idl.Embedded].
//
// # JSON
//
// The mapping to JSON is that of generated types, which [thrift.JSON] documents; the tests compare
// bytes. Arguments are an object with the names of the arguments in the IDL, and a result is the
// value that the function returns. Names that the IDL does not declare are errors, unless
// Config.AllowUnknown is set. Code generated with the option for Kitex uses a different mapping.
//
// # Streams
//
// A [StreamClient] opens streams of functions with the annotation streaming.mode. Their messages are the structs
// themselves, without the names of arguments.
//
// # Errors
//
// An exception that the function declares is an *[Exception]. All other errors of calls are of type
// *slipstream.Error, which says whether the server may have executed the call. Its chain contains
//
//   - a *[thrift.JSONError] with a path such as query.items[3].price, if the arguments do not match the function. The call is NotSent;
//   - a *thrift.Error or a *generic.ValueError, if the reply does not match the function;
//   - a *thrift.ApplicationException or an *rpc.StatusError, if the server has answered with one.
//
// # Hostile servers
//
// The caller bounds replies (rpc.ClientConfig.MaxMessage). Values that are decoded for JSON are bounded by
// Config.MaxMemory.
package genericrpc
