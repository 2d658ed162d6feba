// Package audit records what operators do and who was refused: one line of JSON per event, in its
// own file or in the log of the program.
//
// Nothing waits for the file. [Log.Record] puts the event into a queue; one goroutine writes the
// lines. Events that cannot be written, because the disk is full or slow, are counted, and are in
// the log of the program instead.
package audit
