// Package judges holds the tests in which libraries of others judge what the gateway
// says of itself: its description in OpenAPI, its documents by their schemas, and its
// spans.
package judges
