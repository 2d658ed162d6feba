// Package thriftfront answers Thrift clients for documents from a cache: get_depts("42") returns the
// document that is /depts/42 over HTTP, as a struct.
//
// For each resource there is a method for one document and one for several. Which fields a struct has,
// and how documents are encoded, is in package thriftdoc. A document is encoded once: the result is a form
// that the cache keeps with it and charges to its budget.
//
//	bytes --> frame.Scanner, frame.Open --> call.read, admit, authorize, find --> Output      in the turn of the connection
//	                                                        | a document is missing, has no form yet,
//	                                                        | or a token must be checked
//	                                                        +--> later: a worker --> Complete --> later.Write
//
// A call is one object with two ways through the same steps. In a turn it refers to the bytes that were read, and
// answers only what is in memory. Otherwise its bytes are copied, and a worker repeats the steps with a cache
// that may load. Documents are read before the answer is begun, because the answer is a value or an exception.
//
// Answers keep the order of their calls unless the header of a call allows any order: calls only read, so they may run
// concurrently anyway.
//
// Messages have at most 64 KiB, batches 1,000 keys. The transports are those of package frame, with the Binary
// protocol. Credentials are in the header of each call, as over HTTP; messages without a header have none, so
// they reach what anyone may read, and what the certificate of the connection admits.
package thriftfront
