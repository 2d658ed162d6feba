// Package browser holds the tests that look at the dashboard through a real browser.
// The gateway runs in the process of the test.
package browser
