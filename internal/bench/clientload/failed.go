package clientload

import (
	"errors"
	"strconv"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Failed returns an error of a client with its kind: a cause common to all connections or, for
// other errors, whether the server may have executed the request. Stalled is the client's error for
// a server that was silent for too long, or nil.
func Failed(err, stalled error) error {
	var client *slipstream.Error
	kind := load.ErrorKind(err)
	switch {
	case stalled != nil && errors.Is(err, stalled):
		kind = "timeout"
	case kind == "other" && errors.As(err, &client):
		kind = client.Outcome.String()
	}
	return load.WithKind(kind, err)
}

// Refused returns an error for an error reply of the server; the kind is its code.
func Refused(code string, err error) error {
	return load.WithKind("error "+code, err)
}

// WrongAnswer returns the error for a reply that belongs to another request; it quotes the start of
// text.
func WrongAnswer(what string, text []byte) error {
	return load.WithKind("wrong answer", errors.New(what+" begins with "+strconv.Quote(string(text[:min(len(text), headerSize)]))))
}

// StaleAnswer returns the error for a reply with a value that was replaced before the request was
// sent.
func StaleAnswer(what string) error {
	return load.WithKind("stale answer", errors.New(what+" is older than a write that was acknowledged before the request"))
}
