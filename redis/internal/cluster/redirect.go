package cluster

import (
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// A Redirect tells a client to send a command to another node.
type Redirect struct {
	// Ask says whether to send only this command there, after ASKING: the slot is being migrated,
	// and its owner remains the same. If false, the slot has moved.
	Ask bool
	// Slot is the slot of the command.
	Slot uint16
	// Host and Port are as the server wrote them. An empty host or "?" means the host that was asked.
	Host string
	Port uint16
}

// A RedirectError says why a redirect could not be parsed.
type RedirectError struct {
	// Text is the text of the redirect, truncated if it is long.
	Text string
	// Wrong says what the text contains, and Expected what it should contain.
	Wrong, Expected string
}

// Error implements error.
func (e *RedirectError) Error() string {
	return "redirect " + quoted(e.Text) + ": " + e.Wrong + ", expected " + e.Expected
}

// ParseRedirect parses an error reply. Code is its first word, MOVED or ASK, and message is the rest,
// such as "3999 127.0.0.1:6381". ParseRedirect allocates only if there is an error. Host aliases
// message. Words after the address are ignored.
func ParseRedirect(code, message string) (Redirect, error) {
	var d Redirect
	switch code {
	case "MOVED":
	case "ASK":
		d.Ask = true
	default:
		return d, redirectError(code, message, "the code "+quoted(code), "MOVED or ASK")
	}
	digits, target, _ := strings.Cut(message, " ")
	s, ok := number(digits, slot.Count-1)
	if !ok {
		return d, redirectError(code, message, "the slot "+quoted(digits), "a number from 0 to "+strconv.Itoa(slot.Count-1))
	}
	d.Slot = uint16(s)
	target, _, _ = strings.Cut(target, " ")
	host, port, ok := splitAddr(target)
	if !ok || port == 0 {
		return d, redirectError(code, message, "the address "+quoted(target), "host:port")
	}
	if len(host) > maxHost {
		return d, redirectError(code, message, "a host of "+strconv.Itoa(len(host))+" bytes", "at most "+strconv.Itoa(maxHost))
	}
	d.Host, d.Port = host, uint16(port)
	return d, nil
}

func redirectError(code, message, wrong, expected string) error {
	text := code + " " + message
	return &RedirectError{Text: text[:min(len(text), 2*maxHost)], Wrong: wrong, Expected: expected}
}

// Addr returns the address to dial. Before connecting, the caller must check that the topology lists it;
// see [Refresher.Verify]. Asked is the address of the node that sent the redirect.
func (d Redirect) Addr(a *Addresses, asked string) (string, error) {
	addr, wrong := a.dial(asked, d.Host, int(d.Port))
	if wrong == nil && addr == "" {
		wrong = &addressError{"no address", "host:port"}
	}
	if wrong != nil {
		return "", &RedirectError{Text: joinAddr(d.Host, int(d.Port)), Wrong: wrong.wrong, Expected: wrong.expected}
	}
	return addr, nil
}
