// Package httpload is the HTTP client of the load generator. Its HTTP/1.1 exists
// because the client of net/http costs more CPU time than many servers under
// test. Its HTTP/2 is that of net/http.
//
//	file         holds
//	conn.go      Conn: a connection, and responses of any framing
//	target.go    Target: one request, over and over, or several, for internal/load
//	request.go   requests as they are sent, and their right statuses
//	template.go  requests with places for keys
//	replay.go    requests of a file
//	options.go   Options: what the user of the command line says
//	tally.go     Tally: what the responses were
//	http2.go     connections of HTTP/2, which several callers share
//	duplicate.go responses that no request asked for
//	phases.go    what opening connections takes, and the first byte of responses
//
// A Conn has one goroutine, which writes a request with one system call and
// usually reads its response with one. It allocates nothing in doing so. What
// comes from the server is read strictly: see package http1. Responses are
// neither decompressed nor redirected. The phases of opening are measured only
// where a connection is opened. That of the first byte costs one more reading of
// the clock for each request, and no system call.
package httpload
