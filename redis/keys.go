package redis

// The table that typedgen generates from commands.txt (this file and policy.go) says where the keys
// of a command are, which servers of a cluster execute it, and how their replies are merged. It
// contains the key specifications and tips of Redis 8.0. A test queries servers of versions 7.0 and
// 8.0 for all their commands, and updates the table with -update; other tests compare keysIn with
// COMMAND GETKEYS. keysIn iterates over an encoded command and allocates nothing. Methods know
// their first key; Cmd finds it once. redis/internal/slot computes the slot of a key.
//
//   - The server does not describe some commands exactly, so keyOptions do: SORT (the last STORE),
//     GEORADIUS and GEORADIUSBYMEMBER (the last STORE or STOREDIST), XREAD and XREADGROUP (a group
//     may be called STREAMS), and MIGRATE (KEYS in place of an empty key). A client cannot know the
//     keys that BY and GET of SORT match; a cluster refuses most of these patterns. The access
//     flags of keys (SET and BITFIELD have variable ones) are not in the table.
//   - Malformed commands, such as those whose number of keys is not a number or exceeds the number
//     of arguments, have fewer keys or none. They are sent to any server, which reports the error.
//   - Channels of a shard (SPUBLISH, SSUBSCRIBE) are routed like keys, and are marked because they
//     are not keys. PUBLISH has no key; its method is routed by the channel, so that messages to
//     one channel keep their order.
//   - Replicas may execute the commands that the server reports as readonly, and also TOUCH,
//     DBSIZE, KEYS and PFCOUNT. SCAN may be sent to a replica if all its steps are sent to the same
//     server. Commands about one server only (PING, INFO, TIME, CONFIG GET, CLUSTER SLOTS;
//     flagLocal) may be repeated, but it matters which server executes them.

// keySpec says which arguments of a command are keys, like a key specification of Redis. Positions
// count from 1; a subcommand is the first argument.
type keySpec struct {
	// first is the position of the first key. With counted, it is the position of the number of
	// keys, which is followed by the keys.
	first int8
	// last is the position of the last key. If negative, it counts from the end: -1 is the last
	// argument. Step is the distance from one key to the next; if zero, it is 1.
	last, step int8
	counted    bool
}

// keyOptions say where the keys of a command are that follow an option, which may be anywhere among
// other options. The specifications of Redis do not describe these commands, or not exactly.
type keyOptions struct {
	// from is the position of the first option; words are the options that are followed by keys.
	from  int
	words []string
	// values are the options that have values, which may look like one of words.
	values []optionValues
	// rest means that all arguments after the first of words are keys, or with half, only the first
	// half of them. Otherwise one key follows, and the last one that is given counts.
	rest, half bool
	// instead is the position of the key in a command without these options, and must be empty in a
	// command that has them; it is 0 if there is no such key.
	instead int
}

// optionValues is an option and the number of values that follow it.
type optionValues struct {
	word string
	n    int
}

var (
	sortOptions    = keyOptions{from: 2, words: []string{"STORE"}, values: []optionValues{{"LIMIT", 2}, {"GET", 1}, {"BY", 1}}}
	radiusOptions  = keyOptions{from: 5, words: []string{"STORE", "STOREDIST"}}
	streamOptions  = keyOptions{from: 1, words: []string{"STREAMS"}, values: []optionValues{{"BLOCK", 1}, {"COUNT", 1}, {"GROUP", 2}}, rest: true, half: true}
	migrateOptions = keyOptions{from: 6, words: []string{"KEYS"}, values: []optionValues{{"AUTH", 1}, {"AUTH2", 2}}, rest: true, instead: 3}
)

// keyCursor iterates over the keys of an encoded command, in order. It allocates nothing. In a
// malformed command, such as one with fewer keys than it announces, it finds fewer keys or none:
// the server reports the error.
type keyCursor struct {
	args    encodedArgs // the arguments after position pos
	end     int         // length of the frame
	pos     int
	count   int // number of arguments
	specs   []keySpec
	options *keyOptions
	// The current range of keys: the position of the next one, that of the last one, and the step.
	key, last, step int
}

// keysIn returns a cursor over the keys of a frame that this package has encoded. The keys of a
// command with [flagChannels] are channels.
func (in *commandInfo) keysIn(frame []byte) keyCursor {
	k := keyCursor{args: encodedArgs{frame}, end: len(frame), specs: in.specs, options: in.options, key: 1}
	words, ok := k.args.header()
	if !ok {
		return keyCursor{key: 1}
	}
	k.args.next() // the name
	k.count = words - 1
	if in.specs == nil && in.key > 0 {
		k.find(keySpec{first: in.key, last: in.key})
	}
	return k
}

// next returns the position of the next key, which is frame[from:to].
func (k *keyCursor) next() (from, to int, ok bool) {
	for k.key > k.last {
		switch {
		case len(k.specs) > 0:
			s := k.specs[0]
			k.specs = k.specs[1:]
			k.find(s)
		case k.options != nil:
			k.key, k.last = k.afterOptions(k.options)
			k.step, k.options = 1, nil
		default:
			return 0, 0, false
		}
	}
	arg, ok := k.skipTo(k.key)
	if !ok {
		return 0, 0, false
	}
	k.key += k.step
	to = k.end - len(k.args.rest) - len("\r\n")
	return to - len(arg), to, true
}

// skipTo returns the argument at a position after pos.
func (k *keyCursor) skipTo(pos int) (arg []byte, ok bool) {
	for k.pos < pos {
		if arg, ok = k.args.next(); !ok {
			return nil, false
		}
		k.pos++
	}
	return arg, ok
}

// find sets the keys of a specification. The table gives them in ascending order.
func (k *keyCursor) find(s keySpec) {
	k.key, k.last, k.step = int(s.first), int(s.last), max(1, int(s.step))
	switch {
	case s.counted:
		arg, _ := k.skipTo(k.key)
		k.last = k.key + smallNumber(arg)
		k.key++
	case s.last < 0:
		k.last += k.count + 1
	}
	if k.last > k.count {
		k.last = 0 // malformed
	}
}

// afterOptions returns the positions of the first and of the last key that follow an option; last
// is less than first if there are none. It does not move the cursor.
func (k *keyCursor) afterOptions(o *keyOptions) (first, last int) {
	first = 1
	args, skip := k.args, 0
	insteadEmpty := true
	for pos := k.pos + 1; pos < k.count; pos++ { // a key follows, so the last argument is not an option
		arg, ok := args.next()
		switch {
		case !ok:
			return 1, 0
		case pos == o.instead:
			insteadEmpty = len(arg) == 0
		case pos < o.from:
		case skip > 0:
			skip--
		case !o.isKeyword(arg):
			skip = o.valuesOf(arg)
		case o.rest:
			if o.instead > 0 && !insteadEmpty {
				return 1, 0
			}
			return pos + 1, k.lastOfRest(pos, o.half)
		default:
			first, last, skip = pos+1, pos+1, 1
		}
	}
	if o.instead > 0 && o.instead <= k.count {
		return o.instead, o.instead
	}
	return first, last
}

// lastOfRest returns the position of the last key if all arguments after pos are keys, or their
// first half. An odd number has no half.
func (k *keyCursor) lastOfRest(pos int, half bool) int {
	switch n := k.count - pos; {
	case !half:
		return k.count
	case n%2 != 0:
		return 0
	default:
		return pos + n/2
	}
}

// isKeyword reports whether an argument is followed by keys.
func (o *keyOptions) isKeyword(arg []byte) bool {
	for _, word := range o.words {
		if isWord(arg, word) {
			return true
		}
	}
	return false
}

// valuesOf returns the number of values that follow an option.
func (o *keyOptions) valuesOf(arg []byte) int {
	for _, v := range o.values {
		if isWord(arg, v.word) {
			return v.n
		}
	}
	return 0
}

// isWord reports whether an argument equals an upper-case word, ignoring case.
func isWord(arg []byte, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i, b := range arg {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		if b != word[i] {
			return false
		}
	}
	return true
}

// smallNumber parses a number of keys as the server does, and returns 0 if the text is not a
// number. No number of arguments has more than 9 digits.
func smallNumber(arg []byte) (n int) {
	if len(arg) == 0 || len(arg) > 9 || arg[0] == '0' {
		return 0
	}
	for _, digit := range arg {
		if digit < '0' || digit > '9' {
			return 0
		}
		n = n*10 + int(digit-'0')
	}
	return n
}
