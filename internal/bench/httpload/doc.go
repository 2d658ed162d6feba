// Package httpload is the HTTP client of the load generator. It has its own HTTP/1.1 client,
// because that of net/http costs more CPU time than many servers under test. For HTTP/2 it uses
// net/http.
//
//	file         holds
//	conn.go      Conn: a connection, and responses of any framing
//	target.go    Target: one request, over and over, or several, for internal/load
//	request.go   requests as they are sent, and the statuses of right responses
//	template.go  requests with places for keys
//	replay.go    requests of a file
//	options.go   Options: what the command line specifies
//	tally.go     Tally: counts of responses
//	http2.go     connections of HTTP/2, which several callers share
//	duplicate.go responses that belong to no request
//	phases.go    the time for opening connections and until the first byte of responses
//
// A Conn has one goroutine, which writes a request with one system call and usually reads its
// response with one. It allocates nothing in doing so. Responses are parsed strictly: see package
// http1. They are not decompressed, and redirects are not followed. The phases of opening are
// measured only when a connection is opened. The phase of the first byte costs one more reading of
// the clock for each request, and no system call.
package httpload
