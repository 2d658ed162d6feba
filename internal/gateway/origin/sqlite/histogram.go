package sqlite

import "time"

// bounds are those of the time from a change to fresh answers. With a poll every 100 ms
// most values are between 100 and 110 ms, so the buckets are narrow there.
var bounds = []time.Duration{
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	105 * time.Millisecond, 110 * time.Millisecond, 125 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second,
}
