package tarantool

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// A Decoder reads MessagePack. It has a memory for its first error: after it every read
// returns the zero value, so that what reads many values asks once, at the end, for
// [Decoder.Err]. What its methods with View in their names return lies in the reply and is
// valid only until the read returns; the others copy.
type Decoder = iproto.Decoder

// NewDecoder returns a decoder of b.
func NewDecoder(b []byte) Decoder { return iproto.NewDecoder(b) }

// Kind is the kind of a MessagePack value, as [Decoder.Kind] tells it.
type Kind = iproto.Kind

// The kinds of values.
const (
	KindEnd     = iproto.KindEnd // no value is left
	KindInvalid = iproto.KindInvalid
	KindNil     = iproto.KindNil
	KindBool    = iproto.KindBool
	KindUint    = iproto.KindUint
	KindInt     = iproto.KindInt
	KindFloat   = iproto.KindFloat
	KindString  = iproto.KindString
	KindBytes   = iproto.KindBytes
	KindArray   = iproto.KindArray
	KindMap     = iproto.KindMap
	KindExt     = iproto.KindExt
)

// The types of Tarantool's extensions of MessagePack.
type (
	// Decimal is a decimal number of up to 38 digits.
	Decimal = iproto.Decimal
	// UUID is a universally unique identifier.
	UUID = iproto.UUID
	// Datetime is a moment with the time zone that it was written in.
	Datetime = iproto.Datetime
	// Interval is a distance between moments in units of the calendar.
	Interval = iproto.Interval
	// BoxError is an error of the server with what it knows of its cause.
	BoxError = iproto.BoxError
	// Tuple is a tuple with the number of its format.
	Tuple = iproto.Tuple
	// Arrow is a batch in the format of Apache Arrow's streams, which is not looked at.
	Arrow = iproto.Arrow
	// Ext is an extension of a type that this package does not know.
	Ext = iproto.Ext
	// DecodeError says what in a reply was not what was expected, and where.
	DecodeError = iproto.DecodeError
)

// Makers of the types.
var (
	ParseDecimal = iproto.ParseDecimal
	ParseUUID    = iproto.ParseUUID
)

// An Appender appends itself as one MessagePack value, an array for a tuple or for
// arguments, with the functions below or any other library.
type Appender interface {
	AppendMsgpack(b []byte) ([]byte, error)
}

// A Reader reads itself from one MessagePack value. It may keep nothing that the decoder's
// View methods return. What it returns, or else what the decoder's Err says, is the error of
// the call.
type Reader interface {
	ReadMsgpack(d *Decoder) error
}

// AppendNil appends nil.
func AppendNil(b []byte) []byte { return iproto.AppendNil(b) }

// AppendBool appends a boolean.
func AppendBool(b []byte, v bool) []byte { return iproto.AppendBool(b, v) }

// AppendInt appends an integer in its shortest form.
func AppendInt(b []byte, v int64) []byte { return iproto.AppendInt(b, v) }

// AppendUint appends an integer in its shortest form.
func AppendUint(b []byte, v uint64) []byte { return iproto.AppendUint(b, v) }

// AppendFloat appends a floating-point number of 64 bits.
func AppendFloat(b []byte, v float64) []byte { return iproto.AppendFloat64(b, v) }

// AppendString appends a string.
func AppendString(b []byte, v string) []byte { return iproto.AppendString(b, v) }

// AppendBytes appends a value of bytes, which Tarantool calls varbinary.
func AppendBytes(b, v []byte) []byte { return iproto.AppendBytes(b, v) }

// AppendArray appends the head of an array; its n elements follow.
func AppendArray(b []byte, n int) []byte { return iproto.AppendArray(b, n) }

// AppendMap appends the head of a map; its n pairs of key and value follow.
func AppendMap(b []byte, n int) []byte { return iproto.AppendMap(b, n) }

// AppendDecimal appends a decimal number.
func AppendDecimal(b []byte, v Decimal) []byte { return iproto.AppendDecimal(b, v) }

// AppendUUID appends a UUID.
func AppendUUID(b []byte, v UUID) []byte { return iproto.AppendUUID(b, v) }

// AppendDatetime appends a moment.
func AppendDatetime(b []byte, v Datetime) []byte { return iproto.AppendDatetime(b, v) }

// AppendInterval appends an interval.
func AppendInterval(b []byte, v Interval) []byte { return iproto.AppendInterval(b, v) }
