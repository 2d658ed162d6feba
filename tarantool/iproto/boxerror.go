package iproto

// BoxError is an error of the server, with the errors that caused it.
type BoxError struct {
	// Type is the class, such as ClientError or LuajitError.
	Type string
	// File and Line say where the error arose, in the server's source or in Lua.
	File string
	Line uint64
	// Message is for human readers.
	Message string
	// Errno is the error number of the operating system, or 0.
	Errno uint64
	// Code is an [ErrorCode], or 0 if the class has none.
	Code uint32
	// Fields are additional facts by name, or nil. The values have the types of [Decoder.Any].
	Fields map[string]any
	// Cause is the error that led to this one, or nil.
	Cause *BoxError
}

// Error implements error.
func (e *BoxError) Error() string {
	text := e.Message
	if text == "" {
		text = "error without a text"
	}
	if e.Code == 0 {
		return text
	}
	return text + " (" + ErrorCode(e.Code).String() + ")"
}

// Unwrap returns the cause, or nil.
func (e *BoxError) Unwrap() error {
	if e.Cause == nil {
		return nil
	}
	return e.Cause
}

// Keys of an encoded stack, and of an error in a stack.
const (
	errorStack = 0x00

	errorType    = 0x00
	errorFile    = 0x01
	errorLine    = 0x02
	errorMessage = 0x03
	errorErrno   = 0x04
	errorCode    = 0x05
	errorFields  = 0x06
)

// longestStack is the maximum number of errors of a stack that are read. The rest are skipped.
const longestStack = 256

// ErrorStack reads an error with its causes from the form that it has in the body of a reply, which
// is a map; [Decoder.Error] reads it from an extension. It returns nil for an empty stack.
func (d *Decoder) ErrorStack() (top *BoxError) {
	for range d.Map() {
		if d.Uint() != errorStack {
			d.Skip()
			continue
		}
		top = nil
		last := &top
		for i := range d.Array() {
			if i >= longestStack {
				d.Skip()
				continue
			}
			if !d.use(eachBoxError) {
				return nil
			}
			e := &BoxError{}
			e.read(d)
			*last, last = e, &e.Cause
		}
	}
	if d.err != nil {
		return nil
	}
	return top
}

func (e *BoxError) read(d *Decoder) {
	for range d.Map() {
		switch d.Uint() {
		case errorType:
			e.Type = d.String()
		case errorFile:
			e.File = d.String()
		case errorLine:
			e.Line = d.Uint()
		case errorMessage:
			e.Message = d.String()
		case errorErrno:
			e.Errno = d.Uint()
		case errorCode:
			e.Code = d.Uint32()
		case errorFields:
			e.readFields(d)
		default:
			d.Skip()
		}
	}
}

func (e *BoxError) readFields(d *Decoder) {
	n := d.Map()
	if n == 0 {
		return
	}
	if !d.Claim(n, eachPair) || !d.use(emptyMap) {
		return
	}
	e.Fields = make(map[string]any, min(n, 16))
	for range n {
		name := d.String()
		e.Fields[name] = d.Any()
		if d.err != nil {
			e.Fields = nil
			return
		}
	}
}

// append appends the error without its causes, with its fields in the order of a real server.
func (e *BoxError) append(b []byte) []byte {
	n := 6
	if len(e.Fields) > 0 {
		n++
	}
	b = AppendMap(b, n)
	b = AppendString(append(b, errorType), e.Type)
	b = AppendUint(append(b, errorLine), e.Line)
	b = AppendString(append(b, errorFile), e.File)
	b = AppendString(append(b, errorMessage), e.Message)
	b = AppendUint(append(b, errorErrno), e.Errno)
	b = AppendUint(append(b, errorCode), uint64(e.Code))
	if len(e.Fields) > 0 {
		b = AppendMap(append(b, errorFields), len(e.Fields))
		for name, v := range e.Fields {
			b = AppendAny(AppendString(b, name), v)
		}
	}
	return b
}

// appendErrorStack appends an error and its causes.
func appendErrorStack(b []byte, e *BoxError) []byte {
	n := 0
	for c := e; c != nil; c = c.Cause {
		n++
	}
	b = AppendArray(append(b, fixMap|1, errorStack), n)
	for c := e; c != nil; c = c.Cause {
		b = c.append(b)
	}
	return b
}
