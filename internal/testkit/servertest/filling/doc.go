// Package filling makes requests as an attacker would: valid messages in which
// one repeated field, map, JSON value or nesting is filled to a size. They are
// derived from the descriptors of the services, so that a new RPC or field is
// covered as soon as it exists.
package filling
