// Package browser holds the tests of the dashboard in a real browser. The gateway runs
// in the process of the test.
package browser
