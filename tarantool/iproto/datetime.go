package iproto

import "strconv"

// Datetime is a point in time, and the offset from UTC at which it is displayed. The zero value is
// the start of 1970 in UTC.
//
// Two Datetimes are == only if they also look the same: the same instant may have any offset and
// zone.
type Datetime struct {
	// Seconds is the number of seconds since the start of 1970 in UTC, negative before it.
	Seconds int64
	// Nanoseconds is the number of nanoseconds after Seconds, less than 1e9.
	Nanoseconds uint32
	// Offset is the offset from UTC in minutes, positive to the east of Greenwich.
	Offset int16
	// Zone is the number of a time zone in Tarantool's list, or 0 for none. It does not change the
	// meaning of Offset.
	Zone int16
}

const nanosPerSecond = 1_000_000_000

// AppendDatetime appends t as an extension. Its Nanoseconds must be less than 1e9.
func AppendDatetime(b []byte, t Datetime) []byte {
	if t.Nanoseconds == 0 && t.Offset == 0 && t.Zone == 0 {
		return appendLE(appendExtHead(b, TypeDatetime, 8), uint64(t.Seconds))
	}
	b = appendLE(appendExtHead(b, TypeDatetime, 16), uint64(t.Seconds))
	return appendLE(b, uint64(t.Nanoseconds)|uint64(uint16(t.Offset))<<32|uint64(uint16(t.Zone))<<48)
}

// appendLE appends a number in little-endian order.
func appendLE(b []byte, v uint64) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24),
		byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func (d *Decoder) datetime(offset int, data []byte) (t Datetime) {
	if len(data) != 8 && len(data) != 16 {
		d.failAt(offset, "datetime of "+itoa(len(data))+" bytes", "8 or 16", nil)
		return t
	}
	t.Seconds = int64(le64(data))
	if len(data) == 16 {
		rest := le64(data[8:])
		t.Nanoseconds, t.Offset, t.Zone = uint32(rest), int16(rest>>32), int16(rest>>48)
	}
	if t.Nanoseconds >= nanosPerSecond {
		d.failAt(offset, "datetime with "+utoa(uint64(t.Nanoseconds))+" nanoseconds", "less than a second", nil)
		return Datetime{}
	}
	return t
}

// String returns the time at its offset in the format of RFC 3339, with as many digits of the
// second as needed, such as 2022-08-16T10:12:13.5+03:00. Years before 0 and after 9999 have a sign.
func (t Datetime) String() string {
	const day = 24 * 60 * 60
	// The offset is added to the second of the day, so nothing overflows.
	days, second := floorDiv(t.Seconds, day)
	shift, second := floorDiv(second+int64(t.Offset)*60, day)
	year, month, dom := civil(days + shift)
	var b []byte
	switch {
	case year < 0:
		b, year = append(b, '-'), -year
	case year > 9999:
		b = append(b, '+')
	}
	b = appendPadded(b, year, 4)
	b = appendPadded(append(b, '-'), month, 2)
	b = appendPadded(append(b, '-'), dom, 2)
	b = appendPadded(append(b, 'T'), second/3600, 2)
	b = appendPadded(append(b, ':'), second/60%60, 2)
	b = appendPadded(append(b, ':'), second%60, 2)
	if t.Nanoseconds > 0 {
		b = appendPadded(append(b, '.'), int64(t.Nanoseconds), 9)
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	if t.Offset == 0 {
		return string(append(b, 'Z'))
	}
	offset := int64(t.Offset)
	b = append(b, '+')
	if offset < 0 {
		b[len(b)-1], offset = '-', -offset
	}
	b = appendPadded(b, offset/60, 2)
	return string(appendPadded(append(b, ':'), offset%60, 2))
}

// civil returns the day of the Gregorian calendar that is the given number of days after
// 1970-01-01. It counts from March on, so that the leap day is the last day of a year, and in eras
// of 400 years.
func civil(days int64) (year, month, dom int64) {
	const (
		era      = 400*365 + 97
		toMarch0 = 719468 // from 0000-03-01 to 1970-01-01
	)
	eras, doe := floorDiv(days+toMarch0, era)
	// Leap days up to the day of the era are subtracted, so that all years have the same length.
	yoe := (doe - doe/1460 + doe/36524 - doe/(era-1)) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	m := (5*doy + 2) / 153 // from March on, the lengths of months repeat 31 30 31 30 31
	dom = doy - (153*m+2)/5 + 1
	year, month = eras*400+yoe, m+3
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, dom
}

// floorDiv divides such that the remainder is not negative.
func floorDiv(a, b int64) (quotient, remainder int64) {
	quotient, remainder = a/b, a%b
	if remainder < 0 {
		quotient, remainder = quotient-1, remainder+b
	}
	return quotient, remainder
}

// appendPadded appends v with leading zeros up to a width.
func appendPadded(b []byte, v int64, width int) []byte {
	from := len(b)
	b = strconv.AppendInt(b, v, 10)
	for n := len(b) - from; n < width; n++ {
		b = append(b, 0)
		copy(b[from+1:], b[from:])
		b[from] = '0'
	}
	return b
}
