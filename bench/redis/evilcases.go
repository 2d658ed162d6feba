package main

import (
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
)

// An evilCase is one way to violate the protocol.
type evilCase struct {
	name string
	// early is sent before any request, reply answers the request for evilKey, late follows 50 ms
	// after it, and endless follows repeatedly.
	early, reply, late, endless string
	// end closes the connection after that. mute stops answering on it, because a missing reply
	// would shift all later ones, which no client can detect.
	end, mute bool
	// harmless cases are valid, so the right answer is expected.
	harmless bool
}

// evilCases lists what a broken or malicious server, or a program that is not Redis at all, may
// send. Types are those of the RESP3 specification; clients that speak RESP2 must refuse them.
func evilCases() []evilCase {
	right := bulk(redisserver.Value(evilKey, evilSize))
	text := redisserver.Value(evilKey, evilSize)
	stray := bulk(redisserver.Value(redisserver.Key(99_999_999), evilSize))
	push := ">2\r\n$7\r\nmessage\r\n$5\r\nhello\r\n"
	return []evilCase{
		// Lengths.
		{name: "bulk length 2^63-1", reply: "$9223372036854775807\r\n"},
		{name: "bulk length 2^63", reply: "$9223372036854775808\r\n"},
		{name: "bulk length 2^64+16, then 16 bytes", reply: "$18446744073709551632\r\n" + text + "\r\n"},
		{name: "bulk length 2^32+16, then 16 bytes", reply: "$4294967312\r\n" + text + "\r\n"},
		{name: "bulk length 1 GiB", reply: "$1073741824\r\nabc"},
		{name: "bulk length -2", reply: "$-2\r\n"},
		{name: "bulk length -2^63", reply: "$-9223372036854775808\r\n"},
		{name: "bulk length empty", reply: "$\r\n"},
		{name: "bulk length 1x", reply: "$1x\r\n" + text + "\r\n"},
		{name: "bulk length of endless digits", reply: "$", endless: "1"},
		{name: "bulk longer than its length", reply: "$4\r\n" + text + "\r\n"},
		{name: "array length 2^63-1", reply: "*9223372036854775807\r\n"},
		{name: "array length 2^31-1", reply: "*2147483647\r\n"},
		{name: "array length -2", reply: "*-2\r\n"},
		{name: "map length 2^63-1", reply: "%9223372036854775807\r\n"},
		{name: "map length 2^62", reply: "%4611686018427387904\r\n"},
		{name: "set length 2^63-1", reply: "~9223372036854775807\r\n"},
		{name: "push length 2^63-1", reply: ">9223372036854775807\r\n"},
		{name: "attribute length 2^63-1", reply: "|9223372036854775807\r\n"},
		{name: "verbatim string of 2 bytes", reply: "=2\r\nab\r\n"},
		{name: "blob error length -5", reply: "!-5\r\n"},
		{name: "chunk length 2^63-1", reply: "$?\r\n;9223372036854775807\r\n"},
		{name: "chunk length -5", reply: "$?\r\n;-5\r\n"},
		// Endless data.
		{name: "endless nested arrays", endless: "*1\r\n"},
		{name: "endless nested maps", endless: "%1\r\n+k\r\n"},
		{name: "endless nested attributes", endless: "|1\r\n+k\r\n"},
		{name: "endless line", reply: "+", endless: "a"},
		{name: "endless error", reply: "-", endless: "E"},
		{name: "endless streamed string", reply: "$?\r\n", endless: ";10\r\n0123456789\r\n"},
		{name: "endless streamed array", reply: "*?\r\n", endless: ":1\r\n"},
		{name: "endless pushes", endless: push},
		{name: "endless attributes before the reply", endless: "|1\r\n+k\r\n+v\r\n"},
		{name: "endless empty lines", endless: "\r\n"},
		// Wrong types.
		{name: "integer", reply: ":5\r\n"},
		{name: "invalid integer", reply: ":12a\r\n"},
		{name: "boolean", reply: "#t\r\n"},
		{name: "invalid boolean", reply: "#x\r\n"},
		{name: "double", reply: ",1.5\r\n"},
		{name: "invalid double", reply: ",abc\r\n"},
		{name: "invalid big number", reply: "(12a\r\n"},
		{name: "empty array", reply: "*0\r\n"},
		{name: "array with the value", reply: "*1\r\n" + right},
		{name: "map with an array as key", reply: "%1\r\n*0\r\n+v\r\n"},
		{name: "set with the value", reply: "~1\r\n" + right},
		{name: "end of a stream without its start", reply: ".\r\n"},
		// Errors that are redirections, to nowhere.
		{name: "empty error", reply: "-\r\n"},
		{name: "MOVED without fields", reply: "-MOVED\r\n"},
		{name: "MOVED to an invalid slot", reply: "-MOVED 99999999 127.0.0.1:1\r\n"},
		{name: "ASK to an invalid address", reply: "-ASK 1 x:y:z\r\n"},
		// Unsolicited frames.
		{name: "a reply before any request", early: stray, reply: right},
		{name: "a second reply in one packet", reply: right + stray},
		{name: "a second reply 50 ms later", reply: right, late: stray},
		{name: "an error after the reply", reply: right + "-ERR unsolicited\r\n"},
		{name: "an empty push before the reply", reply: ">0\r\n" + right},
		{name: "a push before the reply", reply: push + right, harmless: true},
		{name: "a push 50 ms after the reply", reply: right, late: push, harmless: true},
		{name: "a reply with attributes", reply: "|1\r\n+ttl\r\n:3600\r\n" + right, harmless: true},
		{name: "a streamed string", reply: "$?\r\n;4\r\n" + text[:4] + "\r\n;12\r\n" + text[4:] + "\r\n;0\r\n", harmless: true},
		// Not Redis.
		{name: "garbage", reply: "\x00\x01\x02\xff\xfe\r\n"},
		{name: "HTTP", reply: "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"},
		{name: "line feeds only", reply: strings.ReplaceAll(right, "\r\n", "\n")},
		{name: "no line end after the bulk", reply: strings.TrimSuffix(right, "\r\n") + "XX"},
		{name: "half a reply, then the end", reply: right[:8], end: true},
		{name: "half a reply, then silence", reply: right[:8], mute: true},
		{name: "silence", mute: true},
	}
}
