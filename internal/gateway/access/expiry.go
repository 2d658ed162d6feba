package access

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// API keys may expire: the third word of their line is the time.

const untilPrefix = "until:"

// untilForm is what the third word of a line looks like.
const untilForm = "until:2027-06-30 (the last day, in UTC) or until:2027-06-30T18:00:00Z (RFC 3339), between the years 2000 and 2200"

// parseUntil returns when a key expires, in Unix nanoseconds. A key with a date is valid to the
// end of that day in UTC.
func parseUntil(word string) (until int64, ok bool) {
	text, ok := strings.CutPrefix(word, untilPrefix)
	if !ok {
		return 0, false
	}
	t, err := time.Parse(time.DateOnly, text)
	if err == nil {
		t = t.AddDate(0, 0, 1)
	} else if t, err = time.Parse(time.RFC3339, text); err != nil || text[13] != ':' || strings.Contains(text, ",") {
		return 0, false // package time also accepts hours of one digit and decimal commas
	}
	if t.Year() < 2000 || t.Year() > 2200 { // usually a typing mistake; nanoseconds last until 2262
		return 0, false
	}
	return t.UnixNano(), true
}

// LineUntil adds an expiry to a line of [KeyLine]: a date, until the end of which in UTC the key is
// valid, or a date with a time and a zone (RFC 3339). It must not have passed.
func LineUntil(line, until string) (string, error) {
	at, ok := parseUntil(untilPrefix + until)
	if !ok {
		return "", fmt.Errorf("%q is not a time of expiry, expected 2027-06-30 (the last day, in UTC) or 2027-06-30T18:00:00Z (RFC 3339), between the years 2000 and 2200", until)
	}
	if time.Now().UnixNano() >= at {
		return "", fmt.Errorf("%s has passed, expected a time in the future", until)
	}
	return line + " " + untilPrefix + until, nil
}

// datedKey is an API key that expires.
type datedKey struct {
	until int64 // in Unix nanoseconds
	name  string
}

// before returns how many keys expire at a time or before it.
func (k *keySet) before(at int64) int {
	return sort.Search(len(k.dated), func(i int) bool { return k.dated[i].until > at })
}

func (k *keySet) expiredAt(now time.Time) int { return k.before(now.UnixNano()) }

// nextExpiry returns when the next key expires, or the zero time if none does.
func (k *keySet) nextExpiry(now time.Time) time.Time {
	if i := k.expiredAt(now); i < len(k.dated) {
		return time.Unix(0, k.dated[i].until)
	}
	return time.Time{}
}

// reminders are the times at which an expiring key is logged, the most urgent
// first.
var reminders = [...]struct {
	before time.Duration
	text   string
}{
	{0, "API keys have expired and are refused; remove their lines"},
	{24 * time.Hour, "API keys expire within a day"},
	{7 * 24 * time.Hour, "API keys expire within 7 days"},
}

// reminded is what was logged about a key file: the number of keys for each reminder.
type reminded struct {
	of   *keySet
	told [len(reminders)]int
}

// remind logs keys that expire, each key once per reminder, with one line for all keys that have
// reached it.
func (g *Gate) remind() {
	keys, r := g.keys.Load(), &g.reminded
	if keys == nil || len(keys.dated) == 0 {
		return
	}
	if r.of != keys {
		*r = reminded{of: keys}
	}
	now := g.now()
	urgent := 0 // keys that a more urgent reminder covers
	for i, m := range reminders {
		due := keys.before(now.Add(m.before).UnixNano())
		if from := max(r.told[i], urgent); from < due {
			first := keys.dated[from]
			g.cfg.Log.Warn(m.text, "file", g.cfg.KeysFile, "keys", due-from, "first", first.name, "until", time.Unix(0, first.until).UTC().Format(time.RFC3339))
		}
		r.told[i], urgent = max(r.told[i], due), due
	}
}
