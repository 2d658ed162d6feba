package box

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// Response is the body of a reply, a push or an event. Its slices are views of the body, and they
// are nil for parts that the body does not have.
type Response struct {
	// Data is an encoded array: tuples, or the results of a call. If the body has no other part,
	// Data is the rest of the body and has not been checked.
	Data []byte
	// Error is set if the code of the message is an error code.
	Error *iproto.BoxError
	// Metadata describes the columns of Data: see [ParseColumns].
	Metadata []byte
	// BindMetadata describes the parameters of a statement, and BindCount is their number.
	BindMetadata []byte
	BindCount    uint32
	// SQLInfo describes what a statement did: see [ParseSQLInfo].
	SQLInfo []byte
	// StatementID is the ID of a prepared statement.
	StatementID uint32
	// Position is the position of the last tuple of Data.
	Position []byte
	// TupleFormats is an encoded map from the format numbers in [iproto.Tuple] to formats.
	TupleFormats []byte
	// Version, Features and AuthType are the answer to [CodeID]. Features is an encoded array: see
	// [ParseFeatures].
	Version  uint32
	Features []byte
	AuthType []byte
	// EventKey and EventData belong to an event. EventData is nil for a key
	// without a value.
	EventKey  []byte
	EventData []byte
}

// Data returns the data of a body that has no other part, like nearly all bodies. The data are the
// rest of the body and have not been checked. For other bodies, which [ParseBody] reads, Data
// returns false.
func Data(body []byte) ([]byte, bool) {
	if len(body) > 2 && body[0] == fixMap|1 && body[1] == byte(KeyData) {
		return body[2:], true
	}
	return nil, false
}

// ParseBody reads the body of a message with the given code. It skips unknown keys, and of
// duplicate keys the last one counts. An empty body is like an empty map. It allocates memory only
// for errors. The error is a [*iproto.DecodeError].
func ParseBody(code uint32, body []byte) (Response, error) {
	var r Response
	if data, ok := Data(body); ok && code&uint32(CodeError) == 0 {
		r.Data = data
		return r, nil
	}
	var text []byte
	d := iproto.NewDecoder(body)
	if len(body) > 0 {
		for range d.Map() {
			switch key := key(&d); key {
			case uint64(KeyErrorText):
				text = d.BytesView()
			case uint64(KeyError):
				r.Error = d.ErrorStack()
			default:
				r.field(&d, key)
			}
		}
	}
	if err := d.Err(); err != nil {
		return Response{}, err
	}
	switch {
	case code&uint32(CodeError) == 0:
		r.Error = nil
	case r.Error == nil:
		r.Error = &iproto.BoxError{Type: "ClientError", Message: string(text), Code: code &^ uint32(CodeError)}
	}
	return r, nil
}

// field reads the value of a key that does not concern errors.
func (r *Response) field(d *iproto.Decoder, key uint64) {
	switch Key(min(key, 0xff)) {
	case KeyData:
		r.Data = d.Raw()
	case KeyMetadata:
		r.Metadata = d.Raw()
	case KeyBindMetadata:
		r.BindMetadata = d.Raw()
	case KeyBindCount:
		r.BindCount = d.Uint32()
	case KeySQLInfo:
		r.SQLInfo = d.Raw()
	case KeyStatementID:
		r.StatementID = d.Uint32()
	case KeyPosition:
		r.Position = d.BytesView()
	case KeyTupleFormats:
		r.TupleFormats = d.Raw()
	case KeyVersion:
		r.Version = d.Uint32()
	case KeyFeatures:
		r.Features = d.Raw()
	case KeyAuthType:
		r.AuthType = d.StringView()
	case KeyEventKey:
		r.EventKey = d.StringView()
	case KeyEventData:
		r.EventData = d.Raw()
	default:
		d.Skip()
	}
}

// Column describes a column of the result of a statement, or a parameter of one.
type Column struct {
	Name, Type string
	// The following fields are set only in sessions that request full metadata.
	Collation     string
	Span          string // the expression as written
	Nullable      bool
	Autoincrement bool
}

// maxColumns is about 16 times Tarantool's own limit.
const maxColumns = 1 << 15

// Columns reads [Response.Metadata] or [Response.BindMetadata], one column at a time.
type Columns struct {
	// Len is the number of columns.
	Len int

	d iproto.Decoder
}

// ParseColumns starts to read descriptions of columns. The caller reads each with [Columns.Next]
// and checks [Columns.Err] after the last.
func ParseColumns(raw []byte) (c Columns) {
	if raw == nil {
		return c
	}
	c.d.Reset(raw)
	c.Len = c.d.Array()
	if c.Len > maxColumns {
		c.d.Fail(&iproto.DecodeError{Got: itoa(c.Len) + " columns", Want: "at most " + itoa(maxColumns), Err: iproto.ErrLimit})
	}
	if c.d.Err() != nil {
		c.Len = 0
	}
	return c
}

// Next returns the next column. After an error, the column is empty.
func (c *Columns) Next() (column Column) {
	column.read(&c.d)
	return column
}

// Err returns the first error, a [*iproto.DecodeError].
func (c *Columns) Err() error { return c.d.Err() }

func (c *Column) read(d *iproto.Decoder) {
	for range d.Map() {
		switch d.Uint() {
		case columnName:
			c.Name = text(d)
		case columnType:
			c.Type = text(d)
		case columnCollation:
			c.Collation = text(d)
		case columnSpan:
			c.Span = text(d)
		case columnNullable:
			c.Nullable = !d.IsNil() && d.Bool()
		case columnAutoincrement:
			c.Autoincrement = !d.IsNil() && d.Bool()
		default:
			d.Skip()
		}
	}
}

// text reads a string. For nil, it returns "".
func text(d *iproto.Decoder) string {
	if d.IsNil() {
		return ""
	}
	return d.String()
}

// ParseSQLInfo reads [Response.SQLInfo]: the number of rows that a statement changed and the IDs
// that it generated. The error is a [*iproto.DecodeError].
func ParseSQLInfo(raw []byte) (rows uint64, generated []int64, err error) {
	if raw == nil {
		return 0, nil, nil
	}
	d := iproto.NewDecoder(raw)
	for range d.Map() {
		switch d.Uint() {
		case sqlRowCount:
			rows = d.Uint()
		case sqlAutoincrementIDs:
			n := d.Array()
			if !d.Claim(n, 8) { // checked again for each list with the same key
				break
			}
			generated = make([]int64, n)
			for i := range generated {
				generated[i] = d.Int()
			}
		default:
			d.Skip()
		}
	}
	if err := d.Err(); err != nil {
		return 0, nil, err
	}
	return rows, generated, nil
}

// ParseFeatures reads [Response.Features] as a set of bits, in which feature f is the bit 1<<f.
// Features from 64 on are omitted. The error is a [*iproto.DecodeError].
func ParseFeatures(raw []byte) (set uint64, err error) {
	if raw == nil {
		return 0, nil
	}
	d := iproto.NewDecoder(raw)
	for range d.Array() {
		if f := d.Uint(); f < 64 && d.Err() == nil {
			set |= 1 << f
		}
	}
	if err := d.Err(); err != nil {
		return 0, err
	}
	return set, nil
}
