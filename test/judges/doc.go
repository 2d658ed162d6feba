// Package judges holds the tests in which third-party libraries check the gateway's
// self-descriptions: its OpenAPI description, its documents against their schemas, and
// its spans.
package judges
