// Package lists has the two lists that a bus is made of: a [Queue], of what waits for
// one reader, and a [Shared], of the readers to be notified, which many read
// without a copy. Neither has its own lock.
package lists
