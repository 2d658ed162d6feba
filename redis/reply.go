package redis

import (
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// isErrorFrame reports whether a reply may be an error. A reply that begins with
// attributes is examined by serverErrorIn.
func isErrorFrame(frame []byte) bool {
	switch resp.Kind(frame[0]) {
	case resp.SimpleError, resp.BulkError, resp.Attribute:
		return true
	}
	return false
}

// serverErrorIn returns the error of a reply, or nil if it is not an error.
func serverErrorIn(frame []byte) *ServerError {
	if !isErrorFrame(frame) {
		return nil
	}
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	if err != nil || !isError(tok) {
		return nil // what cannot be decoded is an error of decoding
	}
	return parseServerError(tok.Bytes)
}

// A Reply is what a [Completer] gets. It refers to the memory of the connection
// and is valid until Complete returns.
type Reply struct{ frame []byte }

// Raw returns the reply in the Redis serialization protocol.
func (r Reply) Raw() []byte { return r.frame }

// IsNull reports whether the reply is null.
func (r Reply) IsNull() bool {
	tok, err := r.token()
	return err == nil && tok.Null
}

// Bytes returns the text of a reply that is a string or a number, without a
// copy: it is valid until Complete returns. ErrNull is in the chain of the error
// of a reply that is null.
func (r Reply) Bytes() ([]byte, error) {
	tok, err := r.token()
	if err != nil {
		return nil, err
	}
	text, err := textOf(tok)
	if err != nil {
		return nil, mismatch[[]byte](tok, err)
	}
	return text, nil
}

// Int returns the number that the reply is.
func (r Reply) Int() (int64, error) { return intReply(r.frame) }

// Decode decodes the reply as [Client.Do] does. Dst gets copies.
func (r Reply) Decode(dst any) error { return decode(r.frame, dst) }

func (r Reply) token() (resp.Token, error) {
	d := resp.NewDecoder(r.frame)
	tok, err := d.Next()
	if err != nil {
		return tok, &DecodeError{Err: err}
	}
	return tok, nil
}

// intReply reads a number.
func intReply(frame []byte) (int64, error) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	if err != nil {
		return 0, &DecodeError{Err: err}
	}
	n, err := intOf(tok)
	if err != nil {
		return 0, mismatch[int64](tok, err)
	}
	return n, nil
}

// appendReply appends a string; found is false if the reply is null.
func appendReply(dst, frame []byte) (_ []byte, found bool, err error) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	if err != nil {
		return dst, false, &DecodeError{Err: err}
	}
	if tok.Null {
		return dst, false, nil
	}
	text, err := bareStringOf(tok)
	if err != nil {
		return dst, false, mismatch[[]byte](tok, err)
	}
	return append(dst, text...), true, nil
}

// stringReply is appendReply for a string.
func stringReply(frame []byte) (s string, found bool, err error) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	if err != nil {
		return "", false, &DecodeError{Err: err}
	}
	if tok.Null {
		return "", false, nil
	}
	text, err := bareStringOf(tok)
	if err != nil {
		return "", false, mismatch[string](tok, err)
	}
	return string(text), true, nil
}

// doneReply reads OK as true and null as false.
func doneReply(frame []byte) (bool, error) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	switch {
	case err != nil:
		return false, &DecodeError{Err: err}
	case tok.Null:
		return false, nil
	case tok.Kind == resp.SimpleString && string(tok.Bytes) == "OK":
		return true, nil
	}
	return false, mismatch[bool](tok, errMismatch)
}

// bareStringOf is textOf for replies that can only be strings, such as GET's: a
// number there is not the server's answer.
func bareStringOf(tok resp.Token) ([]byte, error) {
	switch tok.Kind {
	case resp.BulkString, resp.SimpleString, resp.VerbatimString:
		if !tok.Null {
			return tok.Bytes, nil
		}
	}
	return nil, cannot(tok)
}
