// Package replay reads files of requests that slipstream bench sends again: lists of
// paths and URLs, access logs, and the request log of the gateway.
//
//	file       holds
//	replay.go  File: the requests in order, and the times to send them
//	read.go    Load: which format a file has, and its lines; lists
//	logs.go    lines of the Common Log Format and of the request log
//
// A file is read once, into memory that is bounded: 24 bytes for each request in addition to its
// target, at most 10,000,000 requests and 512 MiB of targets. A line that does not have the format
// of the file is an error with line and column. A valid line of a log that cannot be sent again is
// skipped and counted.
package replay
