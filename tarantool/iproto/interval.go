package iproto

import (
	"strconv"
)

// Adjust says how a day that does not exist in a month is adjusted after adding months.
type Adjust uint8

// The ways to adjust a day. In Lua, the default is AdjustNone.
const (
	AdjustExcess Adjust = 0 // "excess": excess days go into the next month
	AdjustNone   Adjust = 1 // "none": the last day of the month
	AdjustLast   Adjust = 2 // "last": like none, but the last day of a month remains the last day
)

// Interval is a time span in several units, none of which is converted to another. The zero value
// is an empty span.
type Interval struct {
	Years, Months, Weeks          int32
	Days, Hours, Minutes, Seconds int64
	Nanoseconds                   int32
	Adjust                        Adjust
}

// fields returns the values, sorted by their numbers on the wire.
func (v Interval) fields() [9]int64 {
	return [9]int64{
		int64(v.Years), int64(v.Months), int64(v.Weeks), v.Days, v.Hours, v.Minutes,
		v.Seconds, int64(v.Nanoseconds), int64(v.Adjust),
	}
}

// AppendInterval appends v as an extension that contains the fields that are not 0.
func AppendInterval(b []byte, v Interval) []byte {
	var buf [9*10 + 1]byte
	p := buf[:1]
	for i, f := range v.fields() {
		if f != 0 {
			p[0]++
			p = AppendInt(append(p, byte(i)), f)
		}
	}
	return AppendExt(b, TypeInterval, p)
}

func (d *Decoder) interval(offset int, data []byte) (v Interval) {
	var fields [9]int64
	p := Decoder{b: data}
	for range p.Uint() {
		field := p.Uint()
		value := p.Int()
		if p.err == nil && field >= uint64(len(fields)) {
			p.Fail(&DecodeError{Offset: p.at, Got: "field " + utoa(field), Want: "one below 9"})
		}
		if p.err != nil {
			break
		}
		if narrow := field < 3 || field == 7; narrow && value != int64(int32(value)) || field == 8 && value != int64(AdjustExcess) && value != int64(AdjustNone) && value != int64(AdjustLast) {
			p.Fail(&DecodeError{Offset: p.at, Got: "value " + strconv.FormatInt(value, 10), Want: "one within the range of field " + utoa(field)})
			break
		}
		fields[field] = value
	}
	if p.err == nil && p.Len() > 0 {
		p.Fail(&DecodeError{Offset: p.at, Got: itoa(p.Len()) + " bytes", Want: "the end"})
	}
	if p.err != nil {
		d.failAt(offset, "interval "+quoted(data), "numbers of fields with values", p.err)
		return v
	}
	return Interval{
		Years: int32(fields[0]), Months: int32(fields[1]), Weeks: int32(fields[2]),
		Days: fields[3], Hours: fields[4], Minutes: fields[5], Seconds: fields[6],
		Nanoseconds: int32(fields[7]), Adjust: Adjust(fields[8]),
	}
}

var intervalUnits = [...]string{"years", "months", "weeks", "days", "hours", "minutes", "seconds", "nanoseconds"}

// String returns the fields that are not 0 with their units, such as
// "1 years, -2 days", or "0 seconds".
func (v Interval) String() string {
	var b []byte
	for i, f := range v.fields() {
		if f == 0 || i == len(intervalUnits) {
			continue
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(append(strconv.AppendInt(b, f, 10), ' '), intervalUnits[i]...)
	}
	if len(b) == 0 {
		return "0 seconds"
	}
	return string(b)
}
