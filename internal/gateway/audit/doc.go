// Package audit writes down what operators do and who was refused: a line of JSON an event, to a
// file of its own or to the log of the program.
//
// Nothing waits for the file. [Log.Record] puts the event into a queue; one goroutine writes the
// lines. What cannot be written, because the disk is full or slow, is counted, and is in the
// log of the program instead.
package audit
