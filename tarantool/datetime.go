package tarantool

import (
	"time"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// DatetimeOf returns the instant of t with the offset of its zone in whole minutes. The name of the
// zone is not sent, because Tarantool identifies zones by numbers of its own.
func DatetimeOf(t time.Time) iproto.Datetime {
	_, offset := t.Zone()
	return iproto.Datetime{Seconds: t.Unix(), Nanoseconds: uint32(t.Nanosecond()), Offset: int16(offset / 60)}
}

// TimeOf returns the instant of d in a zone with its offset.
func TimeOf(d iproto.Datetime) time.Time {
	t := time.Unix(d.Seconds, int64(d.Nanoseconds))
	if d.Offset == 0 {
		return t.UTC()
	}
	return t.In(time.FixedZone("", int(d.Offset)*60))
}
