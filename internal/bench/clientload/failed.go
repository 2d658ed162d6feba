package clientload

import (
	"errors"
	"strconv"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Failed gives an error of a client its kind: a cause that any connection has, or else
// whether the server may have executed the request. Stalled is the error of a server
// that was silent for too long, or nil.
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

// Refused is an error that the server has answered with, by its code.
func Refused(code string, err error) error {
	return load.WithKind("error "+code, err)
}

// WrongAnswer is a reply that belongs to another request, of which text is shown.
func WrongAnswer(what string, text []byte) error {
	return load.WithKind("wrong answer", errors.New(what+" begins with "+strconv.Quote(string(text[:min(len(text), headerSize)]))))
}

// StaleAnswer is a reply with a value that was replaced before it was asked for.
func StaleAnswer(what string) error {
	return load.WithKind("stale answer", errors.New(what+" is older than a write that was acknowledged before the request"))
}
