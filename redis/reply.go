package redis

import (
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// isErrorFrame reports whether a reply may be an error. A reply that starts with attributes is
// examined by serverErrorIn.
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
		return nil // a reply that cannot be decoded causes a decoding error later
	}
	return parseServerError(tok.Bytes)
}

// A Reply is the reply passed to a [Completer]. It refers to the memory of the connection and is
// valid until Complete returns.
type Reply struct{ frame []byte }

// Raw returns the reply in the Redis serialization protocol.
func (r Reply) Raw() []byte { return r.frame }

// IsNull reports whether the reply is null.
func (r Reply) IsNull() bool {
	tok, err := r.token()
	return err == nil && tok.Null
}

// Bytes returns the text of a string or a number, without a copy: it is valid until Complete
// returns. If the reply is null, the error has ErrNull in its chain.
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

// Int returns the value of a reply that is a number.
func (r Reply) Int() (int64, error) { return intReply(r.frame) }

// Decode decodes the reply as [Client.Do] does. It copies the data into dst.
func (r Reply) Decode(dst any) error { return decode(r.frame, dst) }

func (r Reply) token() (resp.Token, error) {
	d := resp.NewDecoder(r.frame)
	tok, err := d.Next()
	if err != nil {
		return tok, &DecodeError{Err: err}
	}
	return tok, nil
}

// intReply decodes a number.
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

// appendReply appends the string in a reply; found is false if the reply is null.
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

// stringReply is like appendReply, but returns a string.
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

// doneReply decodes OK as true and null as false.
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

// bareStringOf is like textOf, for replies that can only be strings, such as that of GET: a number
// there did not come from a correct server.
func bareStringOf(tok resp.Token) ([]byte, error) {
	switch tok.Kind {
	case resp.BulkString, resp.SimpleString, resp.VerbatimString:
		if !tok.Null {
			return tok.Bytes, nil
		}
	}
	return nil, cannot(tok)
}
