package box

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// GreetingLen is the length of a greeting in bytes.
const GreetingLen = 128

// SaltLen is the number of bytes of the salt that a scramble uses.
const SaltLen = 20

// Greeting is the first message that a server sends.
type Greeting struct {
	// Version is the version of the server, such as 2.6.0.
	Version string
	// Protocol is the protocol of the connection: Binary.
	Protocol string
	// Instance is the UUID of the server as text, or empty if the server does not send one.
	Instance string
	// Salt is used to authenticate: it has at least [SaltLen] bytes, and 32 from all known servers.
	Salt []byte
}

// ParseGreeting parses the first [GreetingLen] bytes of a connection, which are two lines of 64
// bytes. The error is a [*ProtocolError].
func ParseGreeting(b []byte) (Greeting, error) {
	const line = GreetingLen / 2
	if len(b) < GreetingLen {
		return Greeting{}, &ProtocolError{Offset: len(b), Wrong: "end of the greeting", Expected: itoa(GreetingLen) + " bytes", Err: iproto.ErrTruncated}
	}
	if b[line-1] != '\n' || b[GreetingLen-1] != '\n' {
		return Greeting{}, &ProtocolError{Wrong: "greeting " + quoted(b[:GreetingLen]), Expected: "two lines of 64 bytes"}
	}
	name, rest := word(b[:line-1])
	version, rest := word(rest)
	protocol, rest := word(rest)
	instance, rest := word(rest)
	extra, _ := word(rest)
	bracketed := len(protocol) > 2 && protocol[0] == '(' && protocol[len(protocol)-1] == ')'
	if string(name) != "Tarantool" || len(version) == 0 || !bracketed || len(extra) > 0 {
		return Greeting{}, &ProtocolError{Wrong: "greeting " + quoted(b[:line-1]), Expected: "Tarantool, a version, a protocol in brackets and a UUID"}
	}
	g := Greeting{Version: string(version), Protocol: string(protocol[1 : len(protocol)-1]), Instance: string(instance)}
	if g.Protocol != "Binary" {
		return Greeting{}, &ProtocolError{Wrong: "greeting of the protocol " + quoted(protocol), Expected: "(Binary)"}
	}
	salt, rest := word(b[line : GreetingLen-1])
	extra, _ = word(rest)
	var ok bool
	if g.Salt, ok = decodeBase64(salt); !ok || len(g.Salt) < SaltLen || len(extra) > 0 {
		return Greeting{}, &ProtocolError{Offset: line, Wrong: "salt " + quoted(salt), Expected: "20 bytes or more in base64"}
	}
	return g, nil
}

// word returns the first word of a line and the rest of the line. Words are separated by spaces or
// zero bytes.
func word(line []byte) (first, rest []byte) {
	for len(line) > 0 && blank(line[0]) {
		line = line[1:]
	}
	n := 0
	for n < len(line) && !blank(line[n]) {
		n++
	}
	return line[:n], line[n:]
}

func blank(c byte) bool { return c == ' ' || c == 0 }

// AppendGreeting appends a greeting, for servers. At most 45 bytes of the salt fit. Texts that are
// too long are truncated.
func AppendGreeting(b []byte, g Greeting) []byte {
	first := "Tarantool " + g.Version + " (" + g.Protocol + ") " + g.Instance
	b = appendLine(b, []byte(first))
	return appendLine(b, appendBase64(nil, g.Salt[:min(len(g.Salt), 45)]))
}

func appendLine(b, text []byte) []byte {
	const line = GreetingLen / 2
	text = text[:min(len(text), line-1)]
	b = append(b, text...)
	for range line - 1 - len(text) {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

func appendBase64(b, p []byte) []byte {
	for len(p) > 0 {
		var group [3]byte
		n := copy(group[:], p)
		p = p[n:]
		w := uint(group[0])<<16 | uint(group[1])<<8 | uint(group[2])
		digits := [4]byte{base64Digits[w>>18], base64Digits[w>>12&63], base64Digits[w>>6&63], base64Digits[w&63]}
		for i := n + 1; i < 4; i++ {
			digits[i] = '='
		}
		b = append(b, digits[:]...)
	}
	return b
}

// decodeBase64 decodes p. If p is not base64 with padding, ok is false.
func decodeBase64(p []byte) (out []byte, ok bool) {
	if len(p)%4 != 0 {
		return nil, false
	}
	for len(p) > 0 {
		pad := 0
		if len(p) == 4 {
			for pad < 2 && p[3-pad] == '=' {
				pad++
			}
		}
		w := uint(0)
		for i := range 4 {
			digit := uint(0)
			if i < 4-pad {
				if digit, ok = base64Digit(p[i]); !ok {
					return nil, false
				}
			}
			w = w<<6 | digit
		}
		out = append(out, byte(w>>16), byte(w>>8), byte(w))
		out = out[:len(out)-pad]
		p = p[4:]
	}
	return out, true
}

func base64Digit(c byte) (uint, bool) {
	switch {
	case c >= 'A' && c <= 'Z':
		return uint(c - 'A'), true
	case c >= 'a' && c <= 'z':
		return uint(c-'a') + 26, true
	case c >= '0' && c <= '9':
		return uint(c-'0') + 52, true
	case c == '+':
		return 62, true
	case c == '/':
		return 63, true
	}
	return 0, false
}

// The authentication methods.
const (
	AuthSHA1   = "chap-sha1"
	AuthSHA256 = "pap-sha256" // 2.11, Enterprise: the password itself, for TLS only
)

// ScrambleSHA1 returns the proof for [AuthSHA1] that the client knows the password. The sum
// parameter must be [crypto/sha1.Sum], which a codec cannot import because the crypto packages use
// locks and a clock. The salt must have at least [SaltLen] bytes.
func ScrambleSHA1(sum func([]byte) [20]byte, salt []byte, password string) [20]byte {
	first := sum([]byte(password))
	second := sum(first[:])
	scramble := sum(append(append(make([]byte, 0, SaltLen+20), salt[:SaltLen]...), second[:]...))
	for i := range scramble {
		scramble[i] ^= first[i]
	}
	return scramble
}

// AppendAuth appends the body of an authentication request. For [AuthSHA1], proof is the scramble;
// for [AuthSHA256], it is the password.
func AppendAuth(b []byte, user, method string, proof []byte) []byte {
	b = iproto.AppendString(append(b, fixMap|2, byte(KeyUserName)), user)
	b = iproto.AppendString(append(b, byte(KeyTuple), fixArray|2), method)
	return iproto.AppendStringBytes(b, proof)
}
