// Package conns bounds the open connections of a server and decides which one is closed
// when there are too many. Anybody who reaches the server can open connections without a
// credential, so an unused connection must not keep its slot.
//
// A connection belongs to a stranger until a call on it is authenticated. A stranger's
// connection that stays silent too long is closed. When all slots are taken, the oldest
// stranger's connection of the address with the most connections is closed for a new
// one, so that one machine does not displace all others. Other machines can't take the
// last slots (reservedShare). Connections with an authenticated call are never closed.
package conns
