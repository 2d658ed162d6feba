package redistest

import "time"

// keyspace contains the keys of a server.
type keyspace map[string]*value

// value is the value of a key: one of the four is not nil.
type value struct {
	text    *string
	hash    map[string]string
	list    *[]string
	set     map[string]struct{}
	expires time.Time // never if zero
	version uint64    // increases with every change
}

// kind returns the reply to TYPE.
func (v *value) kind() string {
	switch {
	case v == nil:
		return "none"
	case v.text != nil:
		return "string"
	case v.hash != nil:
		return "hash"
	case v.list != nil:
		return "list"
	}
	return "set"
}

// empty reports whether nothing is left, so that the key is to be removed.
func (v *value) empty() bool {
	return v.text == nil && len(v.hash) == 0 && (v.list == nil || len(*v.list) == 0) && len(v.set) == 0
}

// expire removes expired keys.
func (k keyspace) expire(now time.Time) {
	for key, v := range k {
		if !v.expires.IsZero() && !now.Before(v.expires) {
			delete(k, key)
		}
	}
}

// of returns the value of a key of the given kind, or nil if the key does not exist.
func (k keyspace) of(key, kind string) (*value, error) {
	v := k[key]
	if v != nil && v.kind() != kind {
		return nil, errType
	}
	return v, nil
}

// made is like of, but creates a missing value.
func (k keyspace) made(key, kind string) (*value, error) {
	v, err := k.of(key, kind)
	if err != nil || v != nil {
		return v, err
	}
	v = &value{}
	switch kind {
	case "string":
		v.text = new(string)
	case "hash":
		v.hash = make(map[string]string)
	case "list":
		v.list = new([]string)
	case "set":
		v.set = make(map[string]struct{})
	}
	k[key] = v
	return v, nil
}
