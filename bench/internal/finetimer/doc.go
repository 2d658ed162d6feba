// Package finetimer makes the runtime's timers precise below a millisecond.
//
// The runtime rounds the waits of an idle process up to whole milliseconds, so
// a proxy that delays by 0.1 ms would delay by one. A timer of the kernel that
// fires each period wakes the runtime, which then looks at its timers.
package finetimer
