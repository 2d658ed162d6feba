package redis

import "testing"

// A joined reply is used after the calls of its parts were released, whose memory is then used by
// other calls.
func TestJoinedReplyHasMemoryOfItsOwn(t *testing.T) {
	for policy, reply := range map[responsePolicy]string{
		responseOneSucceeded: "+OK\r\n", responseAllSucceeded: "+OK\r\n", responseJoin: "*1\r\n$1\r\na\r\n",
		responseSum: ":1\r\n", responseMin: "*1\r\n:1\r\n",
	} {
		frame := []byte(reply)
		joined, err := joinReplies(policy, [][]byte{frame}, nil)
		if err != nil {
			t.Fatalf("%v: %v", policy, err)
		}
		clear(frame)
		if string(joined) != reply {
			t.Errorf("policy %v: the joined reply is %q after the part was released, expected %q", policy, joined, reply)
		}
	}
}
