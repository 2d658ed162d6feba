package main

import (
	"encoding/gob"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/redis/redistest"
)

// A fate is the outcome of a call.
type fate uint8

const (
	succeeded fate = iota
	missing        // the server has no such key
	wrong          // without an error, a value of another key
	notSent        // the error says that the server has not received the call
	answered       // the server answered with an error
	unknown        // the server may have executed the call
	cut            // the end of the run ended the call
	fates
)

// An op is one call of a caller. It is encoded by package gob.
type op struct {
	Caller int32
	Seq    int32 // the value that was pushed, from 1; 0 for a GET
	Sent   int64 // Unix time in nanoseconds
	Took   time.Duration
	Fate   fate
}

func (o *op) sent() time.Time  { return time.Unix(0, o.Sent) }
func (o *op) ended() time.Time { return o.sent().Add(o.Took) }

// failed reports whether the call ended with its own error.
func (o *op) failed() bool { return o.Fate == notSent || o.Fate == answered || o.Fate == unknown }

// A ledger is everything that the load process has recorded. It is encoded by package gob.
type ledger struct {
	Ops []op
	// Unresolved is the number of calls that did not return although their contexts had ended.
	Unresolved int
	// Errors maps the texts of errors, without numbers, to how often they occurred.
	Errors map[string]int
}

func (l *ledger) write(path string) error {
	file, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	err = gob.NewEncoder(file).Encode(l)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

func readLedger(path string) (*ledger, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	l := new(ledger)
	if err := gob.NewDecoder(file).Decode(l); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// listKey returns the key of the list to which a caller pushes 1, 2, 3 and so on.
func listKey(caller int) string { return "w:" + strconv.Itoa(caller) }

// valueKey returns the key that a caller reads. It has the slot of the list.
func valueKey(caller int) string { return "{" + listKey(caller) + "}:v" }

// valueOf returns the value stored at valueKey.
func valueOf(caller int) string { return "value of " + listKey(caller) }

// slotOf returns the slot of both keys of a caller.
func slotOf(caller int) int { return redistest.Slot(listKey(caller)) }
