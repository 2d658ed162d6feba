// Package clients holds the tests in which programs of others ask the gateway: HTTP
// clients, proxies, browsers, and clients of Redis.
package clients
