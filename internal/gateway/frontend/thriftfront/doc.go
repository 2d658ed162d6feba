// Package thriftfront serves documents from a cache to Thrift clients: get_depts("42") returns, as a struct, the
// document that HTTP serves as /depts/42.
//
// Each resource has a method that returns one document and a method that returns several. Package thriftdoc defines the
// fields of the structs and the encoding of documents. A document is encoded once: the cache stores the result with the
// document as a form, and charges it to its budget.
//
//	bytes --> frame.Scanner, frame.Open --> call.read, admit, authorize, find --> Output      in the turn of the connection
//	                                                        | a document is missing, has no form yet,
//	                                                        | or a token must be checked
//	                                                        +--> later: a worker --> Complete --> later.Write
//
// A call is one object with two paths through the same steps. In a turn, it refers to the input buffer, and is answered
// only if all of its documents are in memory. Otherwise its bytes are copied, and a worker repeats the steps and may
// load documents. All documents are read before the answer is begun, because the answer is either a value or an
// exception.
//
// Answers keep the order of their calls, unless the header of a call allows any order. Calls only read, so they may run
// concurrently in either case.
//
// A hit on one document is answered from a table of recent answers (package recent) without a look-up: see again.go.
//
// Messages have at most 64 KiB, batches 1,000 keys. The server accepts the transports of package frame, with the Binary
// and the Compact protocol, and answers in those of the call. Forms are in the Binary protocol, and are converted for
// each call in the Compact protocol. Credentials are in the header of each call, as over HTTP. A message without a header has none, so it can
// read only public resources and those that the connection's certificate admits.
package thriftfront
