package redis

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

var (
	errOverflow   = errors.New("the number does not fit")
	errNotANumber = errors.New("not a decimal number")
	errMismatch   = errors.New("no such conversion")
	errFraction   = errors.New("the number has a fraction")
	errNilTarget  = errors.New("the destination is a nil pointer")
	errTarget     = errors.New("the destination is not a pointer")
	errDuration   = errors.New("a reply has no unit of time; decode into an integer")

	durationType = reflect.TypeFor[time.Duration]()
)

// decode decodes one reply into *dst. The frame was cut by the scanner, so its lengths are correct
// and within the limits.
func decode(frame []byte, dst any) error {
	switch raw := dst.(type) {
	case nil:
		return nil
	case *rawFrame:
		*raw = append((*raw)[:0], frame...)
		return nil
	case *lentFrame:
		*raw = frame
		return nil
	}
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	if err != nil {
		return &DecodeError{Err: err}
	}
	return into(&d, tok, dst)
}

// into decodes the value that starts with tok. Common destinations do not need reflection.
func into(d *resp.Decoder, tok resp.Token, dst any) error {
	switch p := dst.(type) {
	case *string:
		return scalar(tok, p, stringOf)
	case *[]byte:
		if p == nil {
			return mismatch[[]byte](tok, errNilTarget)
		}
		if tok.Null {
			*p = nil
			return nil
		}
		text, err := textOf(tok)
		if err != nil {
			return mismatch[[]byte](tok, err)
		}
		*p = append((*p)[:0], text...)
		return nil
	case *int64:
		return scalar(tok, p, intOf)
	case *int:
		return scalar(tok, p, func(t resp.Token) (int, error) {
			n, err := intOf(t)
			if err == nil && int64(int(n)) != n {
				err = errOverflow
			}
			return int(n), err
		})
	case *uint64:
		return scalar(tok, p, uintOf)
	case *float64:
		return scalar(tok, p, floatOf)
	case *bool:
		return scalar(tok, p, boolOf)
	case *Value:
		if p == nil {
			return mismatch[Value](tok, errNilTarget)
		}
		return valueOf(d, tok, p)
	}
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer {
		return &DecodeError{Reply: describe(tok), Type: v.Type(), Err: errTarget}
	}
	if v.IsNil() {
		return &DecodeError{Reply: describe(tok), Type: v.Type().Elem(), Err: errNilTarget}
	}
	return reflected(d, tok, v.Elem())
}

func scalar[T any](tok resp.Token, p *T, convert func(resp.Token) (T, error)) error {
	if p == nil {
		return mismatch[T](tok, errNilTarget)
	}
	v, err := convert(tok)
	if err != nil {
		return mismatch[T](tok, err)
	}
	*p = v
	return nil
}

func mismatch[T any](tok resp.Token, err error) error {
	return wrong(tok, reflect.TypeFor[T](), err)
}

// wrong returns the error for a value that cannot be converted to t. An error inside a reply is
// returned as it is.
func wrong(tok resp.Token, t reflect.Type, err error) error {
	var server *ServerError
	if errors.As(err, &server) {
		return &DecodeError{Err: server}
	}
	return &DecodeError{Reply: describe(tok), Type: t, Err: err}
}

// at prepends a step to the path of an error.
func at(err error, step string) error {
	var e *DecodeError
	if errors.As(err, &e) {
		e.Path = step + e.Path
	}
	return err
}

// describe describes what the server sent. It contains no values, because they may be secret.
func describe(tok resp.Token) string {
	switch {
	case tok.Null:
		return "null"
	case tok.Kind == resp.Array || tok.Kind == resp.Set || tok.Kind == resp.Push:
		if tok.Len < 0 {
			return "a streamed " + tok.Kind.String()
		}
		return fmt.Sprintf("%s of %d", tok.Kind, tok.Len)
	case tok.Kind == resp.Map:
		return "map"
	case isText(tok):
		return fmt.Sprintf("%s of %d bytes", tok.Kind, len(tok.Bytes))
	}
	return tok.Kind.String()
}

func isError(tok resp.Token) bool {
	return tok.Kind == resp.SimpleError || tok.Kind == resp.BulkError
}

func isText(tok resp.Token) bool {
	switch tok.Kind {
	case resp.SimpleString, resp.BulkString, resp.VerbatimString, resp.BigNumber:
		return true
	}
	return false
}

// cannot returns why tok has no scalar form: it is null, an error, or an aggregate.
func cannot(tok resp.Token) error {
	switch {
	case tok.Null:
		return ErrNull
	case isError(tok):
		return parseServerError(tok.Bytes)
	}
	return errMismatch
}

// textOf returns the text of a scalar as Redis writes it in RESP2. It aliases
// the reply.
func textOf(tok resp.Token) ([]byte, error) {
	switch {
	case tok.Null:
		return nil, ErrNull
	case isText(tok), tok.Kind == resp.Integer, tok.Kind == resp.Double:
		return tok.Bytes, nil
	case tok.Kind == resp.Boolean:
		if tok.Bool {
			return []byte("1"), nil
		}
		return []byte("0"), nil
	}
	return nil, cannot(tok)
}

func stringOf(tok resp.Token) (string, error) {
	text, err := textOf(tok)
	return string(text), err
}

func intOf(tok resp.Token) (int64, error) {
	switch {
	case tok.Null:
		return 0, ErrNull
	case tok.Kind == resp.Integer:
		return tok.Int, nil
	case isText(tok):
		return parseInt(tok.Bytes)
	case tok.Kind == resp.Double:
		if tok.Float != math.Trunc(tok.Float) {
			return 0, errFraction
		}
		// A float64 can be exactly -2^63; 2^63 is the first value that is too large.
		if !(tok.Float >= math.MinInt64 && tok.Float < math.MaxInt64) {
			return 0, errOverflow
		}
		return int64(tok.Float), nil
	case tok.Kind == resp.Boolean:
		if tok.Bool {
			return 1, nil
		}
		return 0, nil
	}
	return 0, cannot(tok)
}

// parseInt distinguishes numbers that are too large from text that is not a
// number.
func parseInt(text []byte) (int64, error) {
	n, err := resp.ParseInt(text)
	if err == nil {
		return n, nil
	}
	return 0, numberError(text)
}

func numberError(text []byte) error {
	digits := text
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return errNotANumber
	}
	for _, b := range digits {
		if b < '0' || b > '9' {
			return errNotANumber
		}
	}
	return errOverflow
}

func uintOf(tok resp.Token) (uint64, error) {
	if !tok.Null && isText(tok) {
		n, err := strconv.ParseUint(string(tok.Bytes), 10, 64)
		if err != nil {
			return 0, numberError(tok.Bytes)
		}
		return n, nil
	}
	n, err := intOf(tok)
	if err == nil && n < 0 {
		err = errOverflow
	}
	return uint64(n), err
}

func floatOf(tok resp.Token) (float64, error) {
	switch {
	case tok.Null:
		return 0, ErrNull
	case tok.Kind == resp.Double:
		return tok.Float, nil
	case tok.Kind == resp.Integer:
		return float64(tok.Int), nil
	case isText(tok):
		f, err := resp.ParseFloat(tok.Bytes)
		if err != nil {
			return 0, errNotANumber
		}
		return f, nil
	}
	return 0, cannot(tok)
}

func boolOf(tok resp.Token) (bool, error) {
	switch {
	case tok.Null:
		return false, ErrNull
	case tok.Kind == resp.Boolean:
		return tok.Bool, nil
	case tok.Kind == resp.Integer && (tok.Int == 0 || tok.Int == 1):
		return tok.Int == 1, nil
	case isText(tok):
		switch string(tok.Bytes) {
		case "1", "true":
			return true, nil
		case "0", "false":
			return false, nil
		}
	case isError(tok):
		return false, cannot(tok)
	}
	return false, errors.New("expected 0, 1, true or false")
}

// elements iterates over the values of an aggregate.
type elements struct {
	d    *resp.Decoder
	left int // if negative, until the end mark
}

// next returns the next element; ok is false after the last one.
func (e *elements) next() (tok resp.Token, ok bool, err error) {
	if e.left == 0 {
		return tok, false, nil
	}
	tok, err = e.d.Next()
	if err != nil {
		return tok, false, &DecodeError{Err: err}
	}
	if e.left < 0 {
		return tok, tok.Kind != resp.End, nil
	}
	e.left--
	return tok, true, nil
}

// isAggregate reports whether values follow that belong to tok.
func isAggregate(tok resp.Token) bool {
	if tok.Null {
		return false
	}
	switch tok.Kind {
	case resp.Array, resp.Set, resp.Map, resp.Push:
		return true
	}
	return false
}

// skip skips the rest of the value that starts with tok.
func skip(d *resp.Decoder, tok resp.Token) error {
	if !isAggregate(tok) {
		return nil
	}
	e := elements{d, tok.Len}
	for {
		tok, ok, err := e.next()
		if err != nil || !ok {
			return err
		}
		if err := skip(d, tok); err != nil {
			return err
		}
	}
}
