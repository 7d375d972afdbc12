// Package conns decides who keeps a connection when there are many. Whoever reaches
// a server can open connections, with or without a credential, so a slot must not
// be held by who does nothing with it.
//
// A connection is a stranger's until a call on it was authenticated. One that stays
// silent for long is closed, and when all slots are taken the oldest makes room for
// the next: of the address that has the most connections, so that one machine does
// not drive out all others. No address but this machine's own may take the last
// slots. Connections with an authenticated call are never closed here.
package conns
