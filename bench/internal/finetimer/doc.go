// Package finetimer makes the runtime's timers precise below a millisecond.
//
// The runtime rounds the waits of an idle process up to whole milliseconds, so a proxy that should
// delay by 0.1 ms would delay by 1 ms. A timer of the kernel that fires each period wakes the
// runtime, which then checks its timers.
package finetimer
